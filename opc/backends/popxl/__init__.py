"""The PopXL backend: custom ops of Graphcore's graphs in Python."""
