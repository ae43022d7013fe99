"""The custom op of a family as the proof calls it: on the toolkit's x86 simulator."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import ShapeError
from opc.backends import package as packages
from opc.backends.base import OpError, Session, Unsupported, not_carried
from opc.backends.rknn.board import MACHINE, Board
from opc.backends.rknn.graph import SIMULATED, AcceptedCall, make_call, model_of, node
from opc.backends.rknn.names import rknn_name
from opc.backends.rknn.toolkit import ToolkitError, simulate, simulate_isolated
from opc.ir.dtypes import DType
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

INFERENCE_ONLY = "RKNN runs inference only, without gradients"

MOST_NODES = 64
"""How many calls one model holds."""

EIGHT_BITS = frozenset(("int8", "uint8"))
"""The dtypes of inputs on which RKNN's compiler may crash."""

Arguments = tuple[str, Mapping[str, "Array | None"], Mapping[str, Any]]
"""The op, inputs and attributes of a call."""


class RknnSession(Session):
    """Runs calls as nodes of models on the simulator."""

    no_autograd = INFERENCE_ONLY

    storage = DType.FLOAT16
    """What the simulator rounds every floating output to. It hands a model's inputs to the op as they are."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's module for the toolkit.

        Raises:
            ImportError: when the package is not generated, or the toolkit is not installed.
        """
        import rknn.api  # noqa: F401  # so that its absence shows here

        super().__init__(family, package)
        self.op, self.name = family.forward, rknn_name(family)
        self.module = packages.load(package, "rknn")
        self.custom_op = packages.load(package, "rknn.custom_op")
        self._answers: dict[bytes, dict[str, Array] | ToolkitError] = {}
        self._prepared: dict[bytes, AcceptedCall] = {}
        self._emulated: dict[tuple[str, bytes], dict[str, Array] | OpError] = {}
        # Why nothing runs on an emulation, by machine: found with the first call, and not sought again with each.
        self._absent: dict[str, str] = {}

    def prepare(self, calls: Iterable[Arguments]) -> None:
        """Run those of the calls that RKNN can carry, many in one model; `call` then knows their answers."""
        waiting: dict[bytes, AcceptedCall] = {}
        for op, inputs, attributes in calls:
            try:
                waiting[_key(inputs, attributes)] = self._accepted(op, inputs, attributes)
            except (OpError, Unsupported):
                continue  # `call` says why.
        self._prepared = {key: call for key, call in waiting.items() if "float16" not in _dtypes(call)}
        # RKNN's compiler may crash on inputs of 8-bit integers, so each of those calls has a process of its own.
        items = [(key, call) for key, call in waiting.items() if not _dtypes(call) & EIGHT_BITS]
        for start in range(0, len(items), MOST_NODES):
            self._run(items[start : start + MOST_NODES])

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run the op; see `opc.backends.base.Session`."""
        call = self._accepted(op, inputs, attributes)
        key = _key(inputs, attributes)
        if key not in self._answers:
            self._run([(key, call)])
        answer = self._answers[key]
        if isinstance(answer, ToolkitError):
            raise OpError(str(answer)) from answer
        return answer

    def emulations(self) -> dict[str, Callable[..., dict[str, Array]]]:
        """Return, by a kind of results, what calls the C++ op on an emulation of RKNN's runtime, one for each machine."""
        return {f"emulated on {m}": partial(self._emulate, m) for m in dict.fromkeys((platform.machine(), MACHINE))}

    def _emulate(self, machine: str, op: str, inputs: Inputs, attributes: Attributes) -> dict[str, Array]:
        """Run the C++ op; the first call runs all prepared ones, since a process and more so an emulator is slow to start."""
        call = self._accepted(op, inputs, attributes)
        if "float16" in _dtypes(call):
            raise Unsupported("RKNN's runtime gives floating tensors to an op in float32")
        if any(
            a.length is not None and a.default and len(call.attributes.get(a.name, a.default)) == 0 for a in self.op.attributes
        ):
            raise Unsupported("RKNN's runtime has no empty lists: an attribute without elements has its default")
        if machine in self._absent:
            raise Unsupported(self._absent[machine])
        key = _key(inputs, attributes)
        if (machine, key) not in self._emulated:
            calls = {**self._prepared, key: call}
            try:
                answers = Board(self.package, machine).run(list(calls.values()))
            except Unsupported as reason:
                self._absent[machine] = str(reason)
                raise
            self._emulated |= {(machine, k): a for k, a in zip(calls, answers, strict=True)}
        answer = self._emulated[machine, key]
        if isinstance(answer, OpError):
            raise answer
        return answer

    def _run(self, items: Sequence[tuple[bytes, AcceptedCall]]) -> None:
        """Run calls as one model, and each alone when that fails, for the toolkit does not say which of them it minds."""
        model, feeds = model_of(self.name, [call for _, call in items])
        try:
            run = simulate_isolated if any(_dtypes(call) & EIGHT_BITS for _, call in items) else simulate
            outputs = iter(run(model, feeds, self.module.register).outputs)
        except ToolkitError as error:
            if len(items) == 1:
                self._answers[items[0][0]] = error
                return
            half = len(items) // 2
            self._run(items[:half])
            self._run(items[half:])
            return
        for key, call in items:
            self._answers[key] = {name: next(outputs).astype(dtype.value) for name, (dtype, _) in call.outputs.items()}

    def _accepted(self, op: str, inputs: Inputs, attributes: Attributes) -> AcceptedCall:
        """Return a call that the custom op does not refuse.

        Raises:
            OpError: when the op refuses the call, which is what the toolkit shows of a `shape_infer` that raises.
            Unsupported: when RKNN has no such call.
        """
        if op != self.op.name:
            raise not_carried(self.ops[op], INFERENCE_ONLY)
        given = {name: a for name, a in inputs.items() if a is not None}
        for array in given.values():
            self._carried(array)
        try:
            call = make_call(self.op, inputs, attributes)
        except ShapeError as refusal:
            raise self._refusal(given, attributes, refusal) from refusal
        self._expressed(call)
        return call

    def _carried(self, array: Array) -> None:
        """Raise Unsupported for a tensor that no model of RKNN has."""
        if array.dtype.name not in {d.value for d in SIMULATED}:
            raise Unsupported(f"RKNN has no tensors of {array.dtype}")
        if array.ndim == 0:
            raise Unsupported("RKNN's models have no inputs without axes")
        if array.size == 0:
            raise Unsupported("RKNN has no empty tensors")
        if array.dtype.itemsize == 1 and array.dtype.kind in "iu" and array.ndim == 4:
            raise Unsupported("RKNN's compiler crashes on inputs of 8-bit integers with four axes")
        if array.dtype.name == "int64" and array.ndim == 4 and ((array > 2**53) | (array < -(2**53))).any():
            raise Unsupported("RKNN's toolkit takes an input of four axes for images, and rounds int64 to float64")

    def _expressed(self, call: AcceptedCall) -> None:
        for dtype, shape in call.outputs.values():
            if dtype not in SIMULATED:
                raise Unsupported(f"RKNN has no tensors of {dtype}")
            if 0 in shape:
                raise Unsupported("RKNN has no empty tensors")
        names = [o.name for o in call.op.inputs]
        last = max(names.index(name) for name in call.feeds)
        absent = [name for name in names[:last] if name not in call.feeds]
        if absent:
            raise Unsupported("RKNN's compiler takes no node that leaves out an input and gives one behind it")

    def _refusal(self, given: Mapping[str, Array], attributes: Mapping[str, Any], refusal: ShapeError) -> OpError | Unsupported:
        """Return how the custom op refuses a call: in the method the toolkit calls when it loads a model."""
        import numpy as np

        floating = {a.dtype.name for a in given.values() if a.dtype.kind == "f"}
        held = [np.dtype(np.float32) if a.dtype.kind == "f" else a.dtype for a in given.values()]
        try:
            made = node(self.name, self.op, given, attributes)
        except (TypeError, ValueError) as error:
            return OpError(f"{self.op.name}: {error}")
        custom = getattr(self.custom_op, f"{self.name.op_type[0].upper()}{self.name.op_type[1:]}")()
        try:
            custom.shape_infer(made, [list(given[o.name].shape) for o in self.op.inputs if o.name in given], held)
        except Exception as error:  # Whatever it raises, the toolkit shows.
            return OpError(str(error))
        if len(floating) > 1 or "float16" in floating:
            return Unsupported("RKNN's toolkit gives every floating tensor to the op as float32")
        return OpError(f"accepted by RKNN: {refusal}")


def _dtypes(call: AcceptedCall) -> set[str]:
    """Return the dtypes of the inputs that are given."""
    return {array.dtype.name for array in call.feeds.values()}


def _key(inputs: Inputs, attributes: Attributes) -> bytes:
    """Return a key for a call of the op: the values themselves."""
    import numpy as np

    digest = hashlib.sha256(repr(sorted(attributes.items(), key=lambda item: item[0])).encode())
    for name, array in sorted((n, a) for n, a in inputs.items() if a is not None):
        digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
