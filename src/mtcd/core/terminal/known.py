"""The texts for walks without theory."""

NOT_KNOWN = "not known for this walk"
DECLARE = (
    "override Walk.transitions to declare the probability of each next client, "
    "where it depends on the client alone"
)
