"""NumPy source of ops: reference implementations that generated packages carry."""
