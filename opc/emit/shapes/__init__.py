"""Shape and type inference as text: the check of a call in C++, `shape.py`, and the tests of that."""
