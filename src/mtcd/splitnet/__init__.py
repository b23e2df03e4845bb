"""Split neural networks. These files, and no others, import PyTorch."""
