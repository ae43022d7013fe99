"""Paddle and Paddle Inference: custom operators in C++ over the kernels, and their Python side."""
