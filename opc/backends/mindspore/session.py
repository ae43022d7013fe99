"""A built package in live MindSpore, as the proof calls it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.derived import parts_of_second_gradient
from opc.backends.dtypes import require_named
from opc.backends.mindspore.values import dtype, message, scratch, to_mindspore, to_numpy
from opc.backends.sessions import AutogradSession, Function
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array


class MindSporeSession(AutogradSession):
    """Calls the primitives of a built package, in PyNative mode."""

    subpackage = "mindspore"
    sequence = tuple

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package.

        Raises:
            ImportError: when it is not built.
        """
        # Refused calls are part of the proof: their messages are caught, and need not be logged as well.
        os.environ.setdefault("GLOG_v", "4")
        import mindspore

        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        super().__init__(family, package)
        self.support = packages.load(package, "mindspore.support")
        # MindSpore's Add flushes denormal numbers to zero, so that twice 1e-39 may be 0; a test of this backend holds that.
        self.flushed_parts = parts_of_second_gradient(family)

    def tensor(self, array: Array) -> Any:
        """Return a tensor with the array's values, and its strides where none is negative."""
        return to_mindspore(array)

    def array(self, tensor: Any) -> Array:
        """Return an array with the tensor's values."""
        return to_numpy(tensor)

    def dtype(self, name: str) -> Any:
        """Return MindSpore's dtype of that name.

        Raises:
            Unsupported: when it has no tensors of it.
        """
        require_named(name, "MindSpore", lambda d: d.row.mindspore is not None)
        return dtype(name)

    def message(self, error: Exception) -> str:
        """Return what a refusal says, without the places in MindSpore's own code."""
        return message(error)

    def context(self) -> AbstractContextManager[object]:
        """Return a temporary folder to run in."""
        return scratch()

    def derived(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]) -> Any:
        """Call an op of which there is no function with defaults, which returns the wanted outputs."""
        ranks = [self.support.rank_of(t) for t in tensors.values()]
        primitive = getattr(self.operators, op.name).primitive(ranks, list(wanted), list(attributes.values()))
        found = primitive(*tensors.values())
        made = iter(found if isinstance(found, tuple) else (found,))
        return tuple(next(made) if there else None for there in wanted)

    def vjp(self, function: Function, leaves: Sequence[Any], cotangents: Sequence[Any], *, again: bool) -> Sequence[Any]:
        """Return the gradients of the leaves; see `AutogradSession`."""
        from mindspore import ops

        gradient = ops.GradOperation(get_all=True, sens_param=True)(function)
        found: Sequence[Any] = gradient(*leaves, tuple(cotangents))
        return found
