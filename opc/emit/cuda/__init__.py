"""The loop IR as CUDA C++."""
