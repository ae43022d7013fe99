"""Backends for the runner's tests: one that is right, one that crashes on a call, one that is wrong in known ways."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opc.backends.base import Availability, Backend, Check, OpError, Session, Unsupported
from opc.ir.op import Family
from opc.testing.oracle.bounds import Array


class ReluSession(Session):
    """relu in NumPy; derived ops are not carried."""

    no_autograd = "no autograd"

    def call(
        self, op: str, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], only: Sequence[str] | None = None
    ) -> dict[str, Array]:
        if op != self.family.name:
            raise Unsupported("no derived ops here")
        x = inputs["x"]
        if x is None or x.dtype.name not in {d.value for d in self.family.forward.types[0].dtypes}:
            raise OpError("x is missing or of the wrong dtype")
        return {"y": np.asarray(np.where((x > 0) | np.isnan(x.astype(np.float64)), x, np.zeros((), x.dtype)))}


def _fail() -> None:
    raise AssertionError("this promise is broken")


class CrashingSession(ReluSession):
    def call(self, op: str, inputs: Any, attributes: Any, only: Any = None) -> dict[str, Array]:
        if op == self.family.name and inputs["x"] is not None and inputs["x"].shape == (33,):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().call(op, inputs, attributes, only)


class CarelessSession(ReluSession):
    """Takes what it should refuse, drops NaN, and writes into its input."""

    def call(self, op: str, inputs: Any, attributes: Any, only: Any = None) -> dict[str, Array]:
        if op != self.family.name:
            raise Unsupported("no derived ops here")
        x = inputs["x"]
        if x is None:
            return {"y": np.zeros(())}
        if x.shape == (17,):
            x[3] = 0
        return {"y": np.asarray(np.where(x > 0, x, np.zeros((), x.dtype)))}


class Relu(Backend):
    """The backend around `ReluSession`."""

    name = "fake"
    title = "Fake"
    kind: type[ReluSession] = ReluSession

    def probe(self) -> Availability:
        return Availability(True, "1.0")

    def emit(self, family: Family) -> dict[str, str]:
        return {}

    def session(self, family: Family, package: Path) -> Session:
        return self.kind(family, package)

    def checks(self, session: object) -> Sequence[Check]:
        return [Check("holds", lambda: None), Check("fails", _fail)]


class Crashing(Relu):
    name = "crashing"
    kind = CrashingSession


class Careless(Relu):
    name = "careless"
    kind = CarelessSession


class Missing(Relu):
    name = "missing"

    def probe(self) -> Availability:
        return Availability(False, reason="its framework is not installed", install="pip install missing")


class Emulated(Relu):
    name = "emulated"
    execution = "emulated"


class Compiled(Relu):
    name = "compiled"
    execution = "compiled"
