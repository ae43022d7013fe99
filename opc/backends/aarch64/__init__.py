"""Kernels for aarch64 as the proof calls them: cross-compiled, and run under qemu where this is another machine."""
