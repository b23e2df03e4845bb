"""What the planner proposes, beside the best of a grid by hand: in cost, and in time."""
