"""Text from IR: C++, NumPy, ONNX functions, shape rules. Knows no framework."""
