"""What Paddle knows an op by, which TensorRT's plugins are called by too: Paddle looks them up by its operator's name."""

from __future__ import annotations

import re

from opc.ir.op import Family, Op
from opc.names import registered


def operator_name(family: Family, op: Op) -> str:
    """Return the name Paddle knows an op by, the domain in front: `opc_nn_leaky_relu`."""
    namespace = re.sub(r"\W", "_", family.forward.domain)
    return f"{namespace}_{registered(op.name)}"
