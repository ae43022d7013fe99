"""The ONNX backend: operator schemas, functions, and ops of the reference evaluator."""
