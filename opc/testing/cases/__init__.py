"""Calls of an op, made from the op alone: sizes that fit, arguments, and calls that must be refused."""
