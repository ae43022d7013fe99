"""The proof: oracle, cases, gradient checks, independent references, and the runner that holds every backend to them."""
