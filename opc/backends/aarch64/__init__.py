"""Kernels for aarch64 as the proof calls them: cross-compiled, and run under qemu where this is another machine."""

from opc.backends.kernel.target import AARCH64

PROGRAM = f"build/{AARCH64}/program"
"""The path of an op's program, relative to the package directory."""
