"""Ops as functions in standard ONNX operators."""
