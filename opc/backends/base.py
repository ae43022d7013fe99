"""The contract of a backend, and what opc finds backends by.

A backend turns an op family into the files of one framework, says how to build them, and offers a session that the proof runs its
cases through. Backends are found through the entry-point group `opc.backends`, so that a third party adds one without touching
opc. Importing a backend's module must be cheap: it imports its framework only inside `session`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from opc.diagnostics import Diagnostic
from opc.ir.op import Family

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

GROUP = "opc.backends"
"""The entry-point group backends register under."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend's framework can be used here: its version, or the reason it can't and the line that installs it."""

    available: bool
    version: str | None = None
    reason: str | None = None
    install: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """What `opc env create` makes for a backend whose framework can't live beside the others.

    `extra` is the extra of the backend's own distribution that holds the pinned versions; it names the environment, which
    backends that ask for the same extra share. The distributions `alone` are installed without what they ask for, since their
    requirements contradict the others' and are wrong.
    """

    extra: str
    alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compile:
    """One compiler call: `source` to `object`, both relative to the package directory. `language` is "c" or "c++".

    The language's standard, optimisation, position independence, and the include directories of the runtime and of the package
    are added by the build system. Each entry of `flags` is one argument; it is quoted for the shell by the build system. With
    `compiler`, a command of its own takes the place of the user's compiler and flags: one for another machine.

    `glue` is code between a framework and kernels, which computes nothing: libraries for this machine alone have it without
    optimisation. `header` is what the source includes before anything else, spelled as there; the build system may compile it
    ahead for all packages, which changes no object.
    """

    source: str
    object: str
    flags: tuple[str, ...] = ()
    language: str = "c++"
    compiler: tuple[str, ...] = ()
    glue: bool = False
    header: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One linker call: objects to a shared library or a `program`, paths relative to the package directory.

    An object may be another step's shared library. `$ORIGIN` in a flag is kept as it is. `compiler` is that of the objects.
    """

    objects: tuple[str, ...]
    output: str
    flags: tuple[str, ...] = ()
    program: bool = False
    compiler: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """One run of a Python program of the package: `script` is called with the path of `output` and writes that file.

    Both are relative to the package directory. The program may import what opc itself depends on.
    """

    script: str
    output: str


BuildStep = Compile | Link | Script


class OpError(Exception):
    """An op call was refused: the framework's own error for a wrong dtype, rank, size or attribute, with its message."""


class Unsupported(Exception):
    """This session cannot carry a case at all (a dtype the framework lacks, say); the message is the reason shown."""


class Session(Protocol):
    """A loaded op in a live framework. Arrays are NumPy's; bfloat16 is `ml_dtypes.bfloat16`.

    `op` names a member of the family (`leaky_relu`, `leaky_relu_backward`, ...). A None input is an absent optional operand.
    Strided inputs reach the framework as strided tensors where it has them.

    A session may have more members, where its framework needs them:

    - `prepare(calls)` is given every call that is to be accepted, as `(op, inputs, attributes)`, before the first of them, by a
      proof that is going to make them all: where it is dear to set up a call, it sets up many at once.
    - `emulations()` returns functions that make calls on an emulation of the framework, by the kind their results are listed as.
    - `storage`, a `DType`, is what the framework rounds floating outputs to, whatever type they are declared with.
    - `flushed_parts`, an int, says that the framework makes a second gradient as a sum of at most so many parts, added by an
      adder of its own that takes denormal numbers for zero.
    """

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family and return its outputs by name.

        `only` names the optional outputs to compute, by default all but the gradients of absent inputs.

        Raises:
            OpError: when the framework refuses the call.
            Unsupported: when the case cannot be expressed in this framework.
        """
        ...

    def gradient(
        self, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], cotangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of the floating inputs through the framework's own autograd; Unsupported when it has none."""
        ...

    def second_gradient(
        self,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Array],
        second: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) over x, for the inputs and (as `d_<output>`) the cotangents."""
        ...

    def checks(self) -> Sequence[Check]:
        """Return what else this framework promises of an op: compile, export, vmap, infer_shapes, ..."""
        ...


class WithoutAutograd:
    """The part of a session that a framework without autograd has; `no_autograd` is the reason shown."""

    no_autograd: str

    def gradient(
        self, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], cotangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Refuse: there is no autograd."""
        raise Unsupported(self.no_autograd)

    def second_gradient(
        self,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Array],
        second: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Refuse: there is no autograd."""
        raise Unsupported(self.no_autograd)


@dataclass(frozen=True, slots=True)
class Check:
    """One framework-specific check of an op: `run` raises AssertionError (or the framework's error) when it does not hold.

    A check that can't run here raises Unsupported with the reason.
    """

    name: str
    run: Any = field(compare=False)


@runtime_checkable
class Backend(Protocol):
    """One framework that ops are generated for.

    A backend may have more members: `environment`, an `Environment`, when `opc env create` is to make one for it; `takes_name`,
    True when a spec may give the op another name for it; `wraps`, True when its code calls the compiled kernel, and so depends on
    the interfaces of ops and not on what they compute; `imports`, names of modules that take long to import, which the proof does
    while packages are built; and `execution`, which is "native" when it is left out, "emulated" when
    what the session runs is not the real target, and "compiled" when nothing can be run at all.
    """

    name: str
    """Short name for the command line: numpy, onnx, onnxruntime, torch."""
    title: str
    """The framework's name for people."""

    def probe(self) -> Availability:
        """Say whether the framework is installed, without importing it."""
        ...

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why the family can't be carried by this backend; empty when it can."""
        ...

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of this backend: path relative to the op's package directory -> text ending in a line break."""
        ...

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the compile and link steps; objects of the kernel come from `opc.backends.kernel`."""
        ...

    def session(self, family: Family, package: Path) -> Session:
        """Load the built package and return the session the proof calls."""
        ...
