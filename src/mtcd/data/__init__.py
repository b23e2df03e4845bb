"""What the clients bring: tables, synthetic data, and matrices split by column."""
