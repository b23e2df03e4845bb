"""What a training would be, without running it: ``mtcd.inspect``."""
