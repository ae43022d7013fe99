"""What is to be computed in a benchmark: one op on inputs of given shapes, and what the call costs at least."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from opc.analysis.cost import Cost, cost
from opc.analysis.shapes.inference import ShapeEnv, infer, infer_types
from opc.ir.dtypes import Binding, DType, numpy_dtype, resolve
from opc.ir.op import Family, Op
from opc.testing.bench import memory
from opc.testing.bench.case import BenchCase
from opc.testing.bench.draws import Draw

ROW = 1024
"""The length of a row in ops that reduce along one."""


@dataclass(frozen=True)
class Problem:
    """One op on inputs of these shapes; attributes that are not given have their defaults.

    Float inputs are numbers of `dtype` around zero, or above it (`positive`); `below` gives int64 inputs, indices below a number,
    `masks` those of bools and `small` of whole numbers of a byte; `scale` multiplies float inputs; `drawn` draws others. Optional
    inputs without a shape are absent. `wrt` are the inputs to be differentiated by. `torch` is what torch computes, where that is
    not the op's reference.
    """

    family: Family
    package: Path
    shapes: Mapping[str, tuple[int, ...]]
    threads: int
    given: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)
    positive: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()
    scale: Mapping[str, float] = field(default_factory=dict)
    drawn: Mapping[str, Draw] = field(default_factory=dict)
    torch: str | Callable[..., Any] = ""
    dtype: str = "float32"

    @cached_property
    def env(self) -> ShapeEnv:
        """What the call binds."""
        return infer(self.family.forward, self.shapes, self.given)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The value of every attribute, as given by a caller."""
        return self.family.forward.complete(self.given)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The input arrays that are given, in the op's order."""
        rng = np.random.default_rng(0)
        return {o.name: memory.copy(self._input(rng, o.name)) for o in self.family.forward.inputs if o.name in self.shapes}

    def _input(self, rng: np.random.Generator, name: str) -> Any:
        shape = self.shapes[name]
        if name in self.drawn:
            values = self.drawn[name](rng, shape)
            return values.astype(self.floating) if values.dtype.kind == "f" else values
        if name in self.below:
            return rng.integers(0, self.below[name], shape)
        if name in self.masks:
            return rng.random(shape) < 0.5
        if name in self.small:
            if next(o.type for o in self.family.forward.inputs if o.name == name) is DType.UINT8:
                return rng.integers(0, 256, shape, np.uint8)
            return rng.integers(-100, 100, shape, np.int8)
        values = np.asarray(rng.standard_normal(shape, dtype=np.float32))
        values = np.asarray(np.abs(values) + np.float32(0.1)) if name in self.positive else values
        values = values * np.float32(self.scale[name]) if name in self.scale else values
        return values.astype(self.floating, copy=False)

    @property
    def floating(self) -> Any:
        """NumPy's dtype of float operands."""
        return numpy_dtype(DType(self.dtype))

    @cached_property
    def binding(self) -> Binding:
        """The dtype of each type variable."""
        dtypes = {o.name: None for o in self.family.forward.inputs}
        return infer_types(
            self.family.forward, dtypes | {n: DType(str(a.dtype)) for n, a in self.inputs.items()}, self.attributes
        )

    def new_outputs(self) -> list[Any]:
        """Return arrays for the outputs, each page of them touched."""
        outputs = self.family.forward.outputs
        types = [numpy_dtype(resolve(o.type, self.binding)) for o in outputs]
        return [memory.full(self.env.outputs[o.name], 1, t) for o, t in zip(outputs, types, strict=True)]

    @cached_property
    def cost(self) -> Cost:
        """What the call costs at least."""
        return cost(self.family.forward, self.env, self.binding)

    @cached_property
    def active(self) -> tuple[str, ...]:
        """The inputs whose gradients are computed."""
        return self.wrt or tuple(n for n, a in self.inputs.items() if a.dtype == self.floating)

    @cached_property
    def gradient_cost(self) -> Cost:
        """What the computed gradients cost at least, from what a framework saves of the forward call."""
        backward = self.family.backward
        if backward is None or backward.derivation is None:
            raise ValueError(f"{self.family.name} has no gradient")
        wanted = [o.name for o, of in zip(backward.outputs, backward.derivation.outputs, strict=True) if of in self.active]
        return cost(backward, infer(backward, self._gradient_shapes(backward), self.given), self.binding, wanted)

    def _gradient_shapes(self, backward: Op) -> dict[str, tuple[int, ...] | None]:
        assert backward.derivation is not None
        known = {**self.shapes, **self.env.outputs}
        return {o.name: known.get(of) for o, (_, of) in zip(backward.inputs, backward.derivation.inputs, strict=True)}


def row_problem(family: Family, package: Path, size: int, threads: int) -> Problem:
    """Return an op on this many elements, in rows of `ROW` where it names an axis; optional inputs are given too."""
    op = family.forward
    row = min(ROW, size)
    named = [d for o in op.inputs for d in o.dims if hasattr(d, "terms")]
    leading = (max(1, size // row),) if named else (size,)
    groups = [d.name for o in op.inputs for d in o.dims if not hasattr(d, "terms")]
    shapes: dict[str, tuple[int, ...]] = {}
    for operand in op.inputs:
        shape: tuple[int, ...] = ()
        for dim in operand.dims:
            # The axes before a row are one; those behind it are none, so that rows lie whole in memory.
            shape += (row,) if hasattr(dim, "terms") else leading if dim.name == groups[0] else ()
        shapes[operand.name] = shape
    return Problem(family, package, shapes, threads)


def case_problem(case: BenchCase, family: Family, package: Path, threads: int) -> Problem:
    """Return the problem of a case of the table."""
    inputs = (case.below, case.positive, case.masks, case.small, case.wrt, case.scale, case.drawn, case.torch)
    return Problem(family, package, case.shapes, threads, case.attributes, *inputs)
