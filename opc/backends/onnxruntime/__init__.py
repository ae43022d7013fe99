"""The ONNX Runtime backend: a custom-op library over the kernels."""
