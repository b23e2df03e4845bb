"""The graph of the clients, clusters, and walks of tokens."""
