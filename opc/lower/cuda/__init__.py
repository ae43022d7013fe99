"""Lowering for CUDA: the stages of a device, and the loops of each bound to blocks and threads."""
