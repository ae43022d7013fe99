"""From index notation to programs on whole arrays: what the NumPy and the ONNX emitters share."""
