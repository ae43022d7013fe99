"""Text of Python wherever it stands: conditions, docstrings, literals, and the layout of calls."""
