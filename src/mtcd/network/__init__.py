"""Who can talk to whom, how clients are grouped, and how a token walks."""
