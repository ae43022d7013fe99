"""A backend for opc: ops as functions on NumPy arrays, called through ctypes."""
