"""The CUDA backend: kernels for a GPU behind a C ABI, called on NumPy arrays."""
