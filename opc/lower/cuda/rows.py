"""Stages of points and rows on a device: points by all threads, rows by blocks."""

from __future__ import annotations

from opc.lower.loop_ir import RowStage


def is_bound(stage: RowStage) -> bool:
    """Whether a stage has a kernel as it is; else its statements have one each."""
    return False
