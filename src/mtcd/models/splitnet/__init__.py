"""Split neural networks. PyTorch is imported here, and where there is a tensor to read."""
