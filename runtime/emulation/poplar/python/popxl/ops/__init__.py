"""Ops of PopXL: those that a custom op's graph needs around it."""

from popxl.ops.call import CallSiteInfo, call, call_with_info
from popxl.ops.elementwise import add, cast, identity, mul, negate, relu, sub, sum
from popxl.ops.host import host_load, host_store

__all__ = [
    "CallSiteInfo",
    "add",
    "call",
    "call_with_info",
    "cast",
    "host_load",
    "host_store",
    "identity",
    "mul",
    "negate",
    "relu",
    "sub",
    "sum",
]
