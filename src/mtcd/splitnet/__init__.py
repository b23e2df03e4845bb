"""Split neural networks. PyTorch is imported here, and in the few files above that put these parts together."""
