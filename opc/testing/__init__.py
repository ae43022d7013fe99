"""The proof: oracle, cases, gradient checks, independent truth, and the runner that holds every backend to them."""
