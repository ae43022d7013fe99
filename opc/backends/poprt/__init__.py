"""The PopRT backend: custom ops of Graphcore's runtime for inference, on models of ONNX."""
