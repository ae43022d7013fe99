"""A built package in live tvm-ffi, as the proof calls it: on tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.dtypes import fills_bytes, require_named
from opc.backends.sessions import TensorSession
from opc.backends.torch_values import to_numpy, to_torch
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array


class TvmFfiSession(TensorSession):
    """Calls the functions of a built package."""

    subpackage = "tvm_ffi"
    no_autograd = "tvm-ffi has no autograd; the gradients are functions of their own"
    refusals = (TypeError, ValueError, IndexError)

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        library = packages.load(package, f"{self.subpackage}.library").LIBRARY
        self.functions = {op.name: library.get_function(op.name) for op in family.ops}

    def tensor(self, array: Array) -> Any:
        """Return a tensor of PyTorch's with the array's values and strides, sharing its memory."""
        return to_torch(array)

    def dtype(self, name: str) -> Any:
        """Return the name of a dtype.

        Raises:
            Unsupported: when DLPack packs elements of it in bytes.
        """
        require_named(name, "tvm-ffi", fills_bytes)
        return super().dtype(name)

    def array(self, tensor: Any) -> Array:
        """Return an array with the tensor's values: PyTorch's, as the caller's, or tvm-ffi's own where the caller has none."""
        import torch

        if not self.family.forward.inputs:
            tensor = torch.from_dlpack(tensor)
        assert isinstance(tensor, torch.Tensor), f"a result is {type(tensor)}, though the caller's tensors are PyTorch's"
        return to_numpy(tensor)

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call the op's function, as users do, or that of a derived op."""
        if op is self.family.forward:
            return getattr(self.module, op.name)(**tensors, **self.values(op, attributes))
        every = self.complete(op, attributes)
        wanted = [there or None for there in self.wanted(op, tensors, attributes, only)]
        found = self.functions[op.name](*tensors.values(), *self.values(op, every).values(), *wanted)
        return tuple(found) if len(op.outputs) > 1 else found
