"""The TensorRT backend: plugins of an op in C++ and in Python, over its kernels on a GPU."""
