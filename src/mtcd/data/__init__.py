"""The data of the clients: tables, synthetic data, and matrices split by column."""
