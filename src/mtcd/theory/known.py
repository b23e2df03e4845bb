"""What to say of a walk of which nothing is known."""

NOT_KNOWN = "not known for this walk"
DECLARE = (
    "override Walk.transitions to declare the probability of each next client, where it depends on the client alone"
)
