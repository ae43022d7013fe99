"""Independent references: examples, ONNX's and PyTorch's own tests and gradients, and differences for derived gradients."""
