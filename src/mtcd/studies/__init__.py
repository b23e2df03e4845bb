"""Model selection: regularisation paths and cross-validation."""
