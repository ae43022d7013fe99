"""Text of C++ wherever it stands: expressions, conditions, names, literals, and lines that are not too long."""
