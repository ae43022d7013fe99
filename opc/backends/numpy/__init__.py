"""The NumPy backend: a cffi extension module over the kernels, and functions on arrays that call it."""
