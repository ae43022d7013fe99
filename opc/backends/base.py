"""The base classes of a backend and its session, and the entry-point group that opc finds backends by.

A backend turns an op family into the files of one framework, says how to build them, and offers a session that the proof runs its
cases through. Backends are found through the entry-point group `opc.backends`, so that a third party adds one without touching
opc. Importing a backend's module must be cheap: it imports its framework only inside `session`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opc.diagnostics import Diagnostic
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Inputs = Mapping[str, Array | None]
    Attributes = Mapping[str, Any]

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
    requirements contradict the others' and are wrong. `program` is a Python program, as an absolute path: it is run by the
    environment's interpreter with a folder of the environment, `made`, as its argument, and what lies beside it is its input.
    """

    extra: str
    alone: tuple[str, ...] = ()
    program: str = ""


@dataclass(frozen=True, slots=True)
class Compile:
    """One compiler call: `source` to `object`, both relative to the package directory. `language` is "c" or "c++".

    The language's standard, optimisation, position independence, and the include directories of the runtime and of the package
    are added by the build system. Each entry of `flags` is one argument; it is quoted for the shell by the build system. With
    `compiler`, a command of its own takes the place of the user's compiler and flags: one for another machine.

    `glue` is code between a framework and kernels, which computes nothing: libraries for this machine alone have it without
    optimisation. `header` is what the source includes before anything else, spelled as there; the build system may compile it
    ahead for all packages, which changes no object. `kept` is a folder for the compiled header, which then serves all output
    folders: that of the environment whose headers are most of it. It then has the headers `also`, which some sources include
    later, and beside it lies an object with the inline functions of opc's headers and of those in the folders `inlined`; for what
    the kept header of the step `over` has too, that one's object is taken.

    `functions` is a header of the runtime with functions that many packages' sources have in common; the build system may compile
    them once, as an object that is linked beside this one. Both then know it by a macro: `OPC_FUNCTIONS_ELSEWHERE` and
    `OPC_FUNCTIONS_HERE`.
    """

    source: str
    object: str
    flags: tuple[str, ...] = ()
    language: str = "c++"
    compiler: tuple[str, ...] = ()
    glue: bool = False
    header: str = ""
    kept: str = ""
    also: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    over: Compile | None = None
    functions: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One linker call: objects to a shared library or a `program`, paths relative to the package directory.

    An object may be another step's shared library. `$ORIGIN` in a flag is kept as it is. `compiler` is that of the objects.
    `shared` are steps that make more objects, of sources of the runtime by absolute paths: one for all packages that ask for it.
    """

    objects: tuple[str, ...]
    output: str
    flags: tuple[str, ...] = ()
    program: bool = False
    compiler: tuple[str, ...] = ()
    shared: tuple[Compile, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """One run of a Python program of the package: `script` is called with the path of `output` and writes that file.

    Both are relative to the package directory. The program may import what opc itself depends on.
    """

    script: str
    output: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One run of a compiler that takes no options of GCC's: `command` with the path of `source`, then `-o` and that of `output`.

    Both are relative to the package directory. `reads` are the other files that it reads, as absolute paths.
    """

    command: tuple[str, ...]
    source: str
    output: str
    reads: tuple[str, ...] = ()


BuildStep = Compile | Link | Script | Tool


@dataclass(frozen=True, slots=True)
class WheelPart:
    """What a wheel carries of a backend, for one op: built libraries, beside the Python modules of the backend's folder.

    `libraries` and `without`, modules that only a build needs, are paths relative to the package directory. `requires` are the
    distributions that all of it runs on, as requirements of Python's packages. With `registers`, importing the backend's module
    registers operators that a framework then knows by name: whoever imports the wheel's module and the framework has them.
    `handed` is the library that users hand to the framework, or to a program without Python. `joined` are tuples of the backend's
    module, by the function of the wheel that returns those of all ops, and what is said of it.
    """

    libraries: tuple[str, ...]
    requires: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    registers: bool = False
    handed: str = ""
    joined: tuple[tuple[str, str, str], ...] = ()


class DeviceLostError(BaseException):
    """A device has failed in a call, after which it takes no other from this process.

    It is no `Exception`: whoever proves an op one call after the other takes those for the failure of a call, and would go on.
    """


class OpError(Exception):
    """An op call was refused: the framework's own error for a wrong dtype, rank, size or attribute, with its message."""


class Unsupported(Exception):
    """This session cannot carry a case at all (a dtype the framework lacks, say); the message is the reason shown."""


@dataclass(frozen=True, slots=True)
class Check:
    """One framework-specific check of an op: `run` raises AssertionError (or the framework's error) when it does not hold.

    A check that can't run here raises Unsupported with the reason.
    """

    name: str
    run: Callable[[], object] = field(compare=False)


def not_carried(op: Op, reason: str) -> Unsupported:
    """Return why a framework runs the op of a spec alone: the `reason` for those derived from it."""
    if op.derivation is None:
        return Unsupported(f"{op.name} tells sizes, which the framework knows before there is data")
    return Unsupported(reason)


class Session(ABC):
    """A loaded op in a live framework. Arrays are NumPy's; bfloat16 is `ml_dtypes.bfloat16`.

    Ops are named as members of the family (`leaky_relu`, `leaky_relu_backward`, ...). A None input is an absent optional operand.
    Strided inputs reach the framework as strided tensors where it has them.

    What a framework lacks keeps its default. `opc.backends.sessions` has sessions of frameworks with tensors and an autograd.
    """

    storage: DType | None = None
    """What the framework rounds floating outputs to, whatever dtype they are declared with; None when it keeps their dtypes."""

    flushed_parts: int = 0
    """The most terms that the framework sums up for a second gradient with an adder that flushes denormal numbers to zero."""

    no_autograd: str = "the framework has no autograd; the gradients are ops of their own"
    """The reason shown for gradients that were not run."""

    tells_sizes: bool = False
    """Whether calls may leave the sizes that data tells to the framework's code, which computes them."""

    traces_gradients: bool = False
    """Whether gradients are traced before there is data, so that sizes that it tells must be given."""

    has_functions: bool = False
    """Whether `function_call` runs ops by their bodies in a framework's standard operators."""

    def __init__(self, family: Family, package: Path) -> None:
        """Remember the family and the folder of its built package."""
        self.family, self.package = family, package
        self.ops = {op.name: op for op in family.ops}

    @abstractmethod
    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family and return its outputs by name.

        `only` names the optional outputs to compute, by default all but the gradients of absent inputs.

        Raises:
            OpError: when the framework refuses the call.
            Unsupported: when the case cannot be expressed in this framework.
        """

    def gradient(self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array]) -> dict[str, Array]:
        """Return the gradients of the floating inputs, by name, through the framework's own autograd.

        Raises:
            Unsupported: when it has none.
        """
        raise Unsupported(self.no_autograd)

    def second_gradient(
        self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array], second: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) over x, for the inputs and (as `d_<output>`) the cotangents.

        Raises:
            Unsupported: when the framework has no autograd.
        """
        raise Unsupported(self.no_autograd)

    def function_call(
        self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None
    ) -> dict[str, Array]:
        """Run one op by its body in standard operators, where the session `has_functions`; as `call` otherwise."""
        raise Unsupported("the framework has no functions")

    def prepare(self, calls: Iterable[tuple[str, Mapping[str, Array | None], Mapping[str, Any]]]) -> None:
        """Set up calls (op, inputs, attributes) at once, where one by one is expensive.

        The proof passes every call that is to be accepted before it makes the first of them.
        """
        return

    def variants(self) -> Mapping[str, Session]:
        """Return sessions that make calls in another way, such as by a vendor's library, by what their results are named by.

        They have those ops alone that may be called so.
        """
        return {}

    def emulations(self) -> Mapping[str, Callable[..., dict[str, Array]]]:
        """Return functions that make calls on an emulation of the framework, by the kind their results are listed as."""
        return {}


class Backend(ABC):
    """One framework that ops are generated for. What a backend does not need keeps its default."""

    name: str
    """The name on the command line, of the entry point, and of the generated module that calls the op: numpy, torch, ..."""

    title: str
    """The framework's name for people."""

    tensor: str = ""
    """The class of the framework's tensors, `torch.Tensor`; see `owns`."""

    symbols: tuple[str, ...] = ()
    """Classes of what stands for tensors in the framework's graphs, where these are others."""

    environment: Environment | None = None
    """The environment that `opc env create` makes for it."""

    execution: Literal["native", "emulated", "compiled"] = "native"
    """Whether sessions run the real target or stand in for it ("emulated"), or nothing can be run at all ("compiled")."""

    wraps: bool = False
    """Whether its code calls the compiled kernel, and so depends on the interfaces of ops and not on what they compute."""

    library_of: str = ""
    """The backend whose code it wraps, with bodies, types and checks, so that it depends on signatures alone; `kernel` where it
    hands on DLPack tensors as they come."""

    on_device: bool = False
    """Whether it has kernels of its own for a device, and so depends on what these hold and on no framework."""

    on_cpu: bool = False
    """Whether it is the CPU's kernels that it runs on an emulation, those of another machine."""

    on_gpu: str = ""
    """The backend whose library its code calls for tensors in a GPU's memory, which say so by `is_cuda`."""

    parts: tuple[str, ...] = ()
    """The backends whose files it is made of, the first of them its framework's, where it has none of its own: the proof alone
    runs it."""

    companion: str = ""
    """The class, as `module:name`, of a backend with `parts` that the proof runs beside this one; see `registry.companions`."""

    size_expressions: bool = False
    """Whether its framework computes with sizes as expressions, and its code depends on an op's shape rules and signature."""

    takes_name: bool = False
    """Whether a spec may give the op another name for it."""

    imports: tuple[str, ...] = ()
    """Modules that take long to import, which the proof imports while packages are built."""

    @property
    def runs_as(self) -> str:
        """The backend whose interpreter runs its sessions: itself, but for one with `parts`."""
        return self.parts[0] if self.parts else self.name

    @abstractmethod
    def probe(self) -> Availability:
        """Say whether the framework is installed, without importing it."""

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why the family can't be carried by this backend; empty when it can."""
        return ()

    @abstractmethod
    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of this backend: path relative to the op's package directory -> text ending in a line break."""

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the compile and link steps; objects of the kernel come from `opc.backends.kernel`.

        Raises:
            SpecError: when something that is compiled against is not installed.
        """
        return ()

    @abstractmethod
    def session(self, family: Family, package: Path) -> Session:
        """Load the built package and return the session the proof calls.

        Raises:
            ImportError: when it has not been built.
        """

    def checks(self, session: Any) -> Sequence[Check]:
        """Return what else the framework promises of an op, on a session of its: compile, export, vmap, infer_shapes, ..."""
        return ()

    def wheel(self, family: Family) -> WheelPart | None:
        """Return what a wheel of the op carries for the framework; None where `opc package` can't take this backend.

        It calls the function named like the op in the backend's module with tensors of the class `tensor`.
        """
        return None

    def joint_library(self, libraries: Sequence[str]) -> str:
        """Return C of one library that stands for those of several ops, where a user hands only one to the framework.

        `libraries` are paths relative to the folder that it lies in. Empty where the framework takes them one by one.
        """
        return ""

    def owns(self, value: object) -> bool:
        """Whether a value is a tensor of the framework, which `opc.load`ed ops answer in kind.

        They call the function named like the op in the package's module named like the backend. The answer depends on the type of
        the value alone, and does not import the framework: while it is not loaded, no value is its tensor.
        """
        return isinstance(value, self.classes())

    def classes(self) -> tuple[type, ...]:
        """Return the classes of the framework's tensors and of what stands for them, of modules that are loaded."""
        paths = (path.rpartition(".") for path in (self.tensor, *self.symbols) if path)
        found = (getattr(sys.modules.get(module), name, None) for module, _, name in paths)
        return tuple(kind for kind in found if isinstance(kind, type))

    def adopt(self, function: Callable[..., Any]) -> bool:
        """Tell the framework's tracers how to take the function that calls `opc.load`ed ops, once a tensor of it has come.

        The answer is whether there was something to tell.
        """
        return False

    def unreadable(self, value: Any) -> str:
        """Return why no kernel can read a tensor that the backend owns (`is on cuda:0`); empty when one can."""
        return ""
