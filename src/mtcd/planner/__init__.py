"""The planner: which method, and which settings, for this data, this network and these link
costs."""
