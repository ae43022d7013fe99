"""How a call is checked and its sizes are bound: the plan, its steps, and running it on numbers."""
