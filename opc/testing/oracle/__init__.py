"""The oracle: what a correct kernel may answer, in float64 with rigorous bounds, and the comparison with it."""
