"""`opc.load`: a spec as a Python function, built on first use and kept in the user's cache."""

from __future__ import annotations

import inspect
import logging
import os
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from opc.backends import exchange
from opc.backends import package as packages
from opc.build import builder, cache
from opc.build import files as written
from opc.diagnostics import Diagnostic, SpecError, Told
from opc.overloads import RankedOp, VariadicOp
from opc.records import replace
from opc.spec import files

_LOG = logging.getLogger("opc")

_PLAIN = frozenset((type(None), bool, int, float, str, list, tuple))
"""Types of attributes, and of an optional input that is absent: no tensors of any framework."""

_CLASSES: dict[type, str] = {}
"""The backends whose tensors are of the classes met so far; empty for those that do not tell."""

_OWNERS: dict[type, str] = {}
"""The backends that own values of the types met so far; empty for those of none."""


class _Unified:
    """Tells `paddle.jit.to_static` of whole graphs to call a function as it stands, which works in dynamic and static graphs."""

    def need_transform(self, mode: object) -> bool:
        return False

    def need_capture_control_flow(self) -> bool:
        return False


class LoadedOp:
    """An op as a function: NumPy arrays in and out; or a framework's tensors in and out, with gradients.

    Its signature and documentation are those of the generated function. `numpy`, `torch`, `paddle`, `mindspore` and so on are the
    generated modules of the backends; each is built when it is first needed. `inputs` are the names of the op's inputs.
    """

    ___jit_transform_options___ = _Unified()

    def __init__(self, spec: Path, text: bytes, out: Path, package: Path) -> None:
        """Import the NumPy functions of a package built below `out` from the text of `spec`."""
        self._spec = spec
        self._text = text
        self._out = out
        self._package = package
        import numpy as np

        self._array = np.ndarray
        self.numpy: ModuleType = packages.load(package, "numpy")
        self.__name__ = self.__qualname__ = package.name
        self._function: Callable[..., Any] = getattr(self.numpy, package.name)
        described = getattr(self.numpy, f"_{package.name}")
        self._arrays, self.inputs = _PLAIN | {np.ndarray}, tuple(o.name for o in described.inputs)
        outputs = described.outputs
        self._with_gpu: set[str] = set()
        self._result = _result_type(package.name, tuple(o.name for o in outputs))
        self.__doc__ = self._function.__doc__
        self.__wrapped__ = self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op; see the instance's own documentation."""
        # The usual call is told by the types alone. Attributes are never tensors, so that otherwise any tensor decides.
        if not (args and type(args[0]) is self._array and self._arrays.issuperset(map(type, (*args[1:], *kwargs.values())))):
            values = (*args, *kwargs.values())
            owners = [_owner(value) for value in values]
            name = next((owner for owner in owners if owner not in ("", "numpy")), None)
            if name is not None:
                if any(owner not in ("", name) or (not owner and _is_array(v)) for v, owner in zip(values, owners)):
                    self._check_alike(args, kwargs)
                # In any call: where `torch.compile` starts anew, it must find the same way through this function.
                self._build_for(name)
                if name not in self._with_gpu and getattr(values[owners.index(name)], "is_cuda", False):
                    self._build_for_gpu(name)
                try:
                    return self._named(getattr(getattr(self, name), self.__name__)(*args, **kwargs))
                except NotImplementedError as error:
                    self._check_readable(args, kwargs, error)
                    raise
            foreign = any(not owner and exchange.is_on_gpu(value) for value, owner in zip(values, owners))
            # Without, the function says by name what is not in the CPU's memory.
            if foreign and exchange.has_gpu():
                return exchange.through_torch(self, args, kwargs)
        return self._named(self._function(*args, **kwargs))

    def _given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a call by name; none where the arguments fit no call: what is wrong, the function itself says."""
        signature = inspect.signature(self._function)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return {}
        return {name: given[p] for p, name in zip(signature.parameters, self.inputs) if given.get(p) is not None}

    def _check_alike(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse inputs that are not all of one framework.

        Raises:
            TypeError: which names an input that is another's, or no tensor at all.
        """
        inputs = self._given(args, kwargs)
        kinds = {name: _owner(value) for name, value in inputs.items()}
        first = next((name for name, kind in kinds.items() if kind), None)
        others = [] if first is None else [name for name, kind in kinds.items() if kind != kinds[first]]
        if first is not None and others:
            # Numbers and lists go with arrays: a tensor is what is wrong there.
            other = max(others, key=lambda name: kinds[name] != "")
            both = f"{other} is {_kind(inputs[other])}, but {first} is {_kind(inputs[first])}"
            raise TypeError(f"{self.__name__}: {both}: all inputs must be of one framework")

    def _check_readable(self, args: Sequence[Any], kwargs: Mapping[str, Any], error: NotImplementedError) -> None:
        """Refuse tensors that no kernel can read, in plainer words than the framework's own.

        Raises:
            NotImplementedError: which names the input.
        """
        from opc.backends import registry

        for name, value in self._given(args, kwargs).items():
            backend = registry.owner(value)
            reason = "" if backend is None else backend.unreadable(value)
            if reason:
                text = f"{self.__name__}: {name} {reason}, but there are kernels for dense tensors in the CPU's memory or CUDA's"
                raise NotImplementedError(text) from error

    def _build_for(self, framework: str) -> bool:
        """Build the module of a framework where that has not been done yet."""
        getattr(self, framework)
        return True

    # `torch.compile`, which could not follow a build, calls it and goes on.
    _build_for._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions

    def _build_for_gpu(self, framework: str) -> bool:
        """Build the kernels for GPUs that a framework's module calls, beside it, where that has not been done yet."""
        from opc.backends import registry

        kernels = registry.load(framework).on_gpu
        if kernels:
            spec = cache.keep_spec(self._out, self._spec.name, self._text)
            if Path(str(getattr(self, framework).__file__)).is_relative_to(self._package):
                _build(spec, self._out, kernels)
            else:
                self._build_beside(spec, kernels)
        self._with_gpu.add(framework)
        return True

    _build_for_gpu._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions

    def __getattr__(self, name: str) -> ModuleType:
        """Return the generated module of a backend, built when it is first needed.

        Raises:
            SpecError: when the op can't be built for the backend.
        """
        if not name.startswith("_"):
            from opc.backends import registry

            if name in registry.registered():
                self.__dict__[name] = module = self._framework(name)
                return module
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _framework(self, name: str) -> ModuleType:
        spec = cache.keep_spec(self._out, self._spec.name, self._text)
        _build(spec, self._out, name)
        try:
            return packages.load(self._package, name)
        except ImportError:
            # A framework keeps an op until the process ends: one of this name, loaded before its spec was changed, is in the way.
            return packages.load(self._build_beside(spec, name), name)

    def _build_beside(self, spec: Path, framework: str) -> Path:
        """Return a package of the same op in a domain, and so a framework's namespace, of its own."""
        from opc.compiler import Stage, compile_spec

        family = compile_spec(spec, to=Stage.FAMILY).family
        domain = f"{family.forward.domain}.r{cache.key(self._out)}"
        ops = ("forward", "backward", "backward_backward", "jvp", "backward_jvp")
        renamed = {name: replace(op, domain=domain) for name in ops if (op := getattr(family, name)) is not None}
        if (sizes := family.forward.sizes) is not None:
            renamed["forward"] = replace(renamed["forward"], sizes=replace(sizes, domain=domain))
        built = builder.build_families([replace(family, **renamed)], self._out / "reloaded", [framework], say=_LOG.warning)
        return _package(built)

    def _named(self, found: Any) -> Any:
        return found if self._result is None else self._result(*found)

    def __repr__(self) -> str:
        return f"<op {self.__name__} from {self._spec}>"

    def __reduce__(self) -> tuple[Callable[[str, bytes], LoadedOp], tuple[str, bytes]]:
        # By content: the file may be another by then, or lie on another machine.
        return _unpickle, (str(self._spec), self._text)


def _owner(value: Any) -> str:
    """Return the name of the backend that a value is a tensor of, `numpy` for its arrays; empty for what is no tensor."""
    # A number may be a symbol to `torch.compile`, and a tensor one of several transforms: it knows their types alone.
    kind = type(value)
    return "" if kind in _PLAIN else _owner_of(kind) or _tensor_owner(value)


def _owner_of(kind: type) -> str:
    """Return the backend whose tensors are of a class; empty where that class does not tell."""
    found = _CLASSES.get(kind)
    if found is None:
        from opc.backends import registry

        backend = registry.owner_of(kind)
        found = _CLASSES[kind] = "" if backend is None else backend.name
        if backend is not None:
            backend.adopt(LoadedOp.__call__)
    return found


def _tensor_owner(value: Any) -> str:
    found = _OWNERS.get(type(value))
    if found is None:
        from opc.backends import registry

        backend = registry.owner(value)
        found = _OWNERS[type(value)] = "" if backend is None else backend.name
    return found


# `torch.compile`, which could not follow the search for a tensor's backend, calls it and goes on.
_owner_of._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions
_tensor_owner._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions


def _is_array(value: Any) -> bool:
    """Whether a value of no framework is something like an array all the same."""
    return type(value) not in _PLAIN and hasattr(value, "__array__")


def _kind(value: Any) -> str:
    """Return what a value is, in words: `a numpy.ndarray`, `an int`."""
    module, name = type(value).__module__.partition(".")[0], type(value).__name__
    text = name if module == "builtins" else f"{module}.{name}"
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _result_type(op: str, outputs: tuple[str, ...]) -> type[tuple[Any, ...]] | None:
    """Return the type of an op's results, a named tuple; None where there is one output, which comes as it is."""
    if len(outputs) == 1:
        return None
    # A name that Python keeps for itself becomes `_0`, its position.
    base: type[tuple[Any, ...]] = namedtuple("base", outputs, rename=True)  # type: ignore[misc]  # names known at run time alone

    def plain(self: tuple[Any, ...]) -> tuple[Any, ...]:
        # The class is made here and no other process has it.
        return tuple, (tuple(self),)

    return type(f"{op}_outputs", (base,), {"__slots__": (), "__reduce__": plain})


def load(spec: str | os.PathLike[str]) -> LoadedOp | RankedOp | VariadicOp:
    """Return the op that a spec describes as a function, which answers tensors with tensors and arrays with arrays.

    The first call builds it, which takes seconds; later ones, in this process or another, find it in the cache, as long as
    neither the spec, opc nor the compiler changes. The cache is `$OPC_CACHE_DIR`, else `$XDG_CACHE_HOME/opc`, else
    `~/.cache/opc`; `opc cache` shows what it holds. Several outputs come as a named tuple.

        leaky_relu = opc.load("specs/leaky_relu.yaml")
        leaky_relu(numpy.array([-1.0, 2.0]), alpha=0.1)
        leaky_relu(torch.tensor([-1.0, 2.0], requires_grad=True)).sum().backward()
        leaky_relu(paddle.to_tensor([-1.0, 2.0]))
        leaky_relu(torch.tensor([-1.0, 2.0], device="cuda"))  # on the GPU, whose kernels are then built
        leaky_relu(cupy.array([-1.0, 2.0]))                   # there too, by way of torch, as all that has `__dlpack__`

    A spec of several ranks is one function too, which chooses among its ops by the number of axes of the operands:

        max_pool = opc.load("specs/onnx/max_pool.yaml")
        max_pool(numpy.zeros((1, 1, 4, 4)), kernel_shape=[2, 2])  # max_pool.max_pool2d

    and one of several counts chooses by how many operands a list holds:

        concat = opc.load("specs/onnx/concat.yaml")
        concat([numpy.zeros(2), numpy.ones(3)])  # concat.concat2

    Raises:
        SpecError: with every mistake in the spec, or the reason it can't be built.
    """
    path = Path(spec).absolute()
    try:
        text = files.content(path)
    except OSError as error:
        raise SpecError([Diagnostic(f"cannot read {path}: {error.strerror}")]) from error
    if files.apart(path) not in ([path], [files.file_of(path)]):
        return _load_overloads(path, text, lambda member: _load(member, text, member))
    return _load(path, text, path)


def _load_overloads(path: Path, text: bytes, load_member: Callable[[Path], LoadedOp]) -> RankedOp | VariadicOp:
    """Return the ops of a text of several ranks or counts as one function; each is loaded by the path that is its own."""
    from opc.spec.instances import numbers_of, read_instances
    from opc.spec.instantiate import inputs_of, lengths_of

    written = text.decode("utf-8", "replace")
    read = read_instances(written)
    assert read is not None, "a text of which there are paths of several ops"
    root, instances = read
    told, mistakes = Told(), list[Diagnostic]()
    keys = [i.key for i in instances]
    members: dict[files.Numbers, LoadedOp] = {}
    for numbers in numbers_of(written):
        try:
            members[numbers] = load_member(path.with_stem(path.stem + files.suffix(keys, numbers)))
        except SpecError as error:
            mistakes += told.new(error.diagnostics)
    if mistakes:
        raise SpecError(mistakes)
    inputs = {numbers: inputs_of(root, instances, numbers) for numbers in members}
    lengths = {numbers: lengths_of(root, instances, numbers) for numbers in members}
    numbers, first = next(iter(members.items()))
    name = first.__name__.removesuffix(files.suffix(keys, numbers))
    again = (_unpickle_overloads, str(path), text)
    if files.COUNTS not in keys:
        return RankedOp(name, members, inputs, lengths, again)
    by_count: dict[int, LoadedOp | RankedOp] = {n[-1]: op for n, op in members.items()}
    if files.RANKS in keys:
        for count in by_count:
            own = {n: op for n, op in members.items() if n[-1] == count}
            by_count[count] = RankedOp(f"{name}{count}", own, inputs, lengths, (_unpickle_count, str(path), text, count))
    return VariadicOp(name, by_count, {n[-1]: given for n, given in inputs.items()}, again)


def _unpickle_overloads(name: str, text: bytes) -> RankedOp | VariadicOp:
    """Return the ops that the text of a spec of several ranks or counts describes."""
    return _load_overloads(Path(name), text, lambda member: _unpickle(str(member), text))


def _unpickle_count(name: str, text: bytes, count: int) -> RankedOp:
    """Return the ops of one count that the text of a spec of several ranks and counts describes."""
    op = _unpickle_overloads(name, text)
    assert isinstance(op, VariadicOp)
    member = op.members[f"{op.__name__}{count}"]
    assert isinstance(member, RankedOp)
    return member


def _unpickle(name: str, text: bytes) -> LoadedOp:
    """Return the op that the text of a spec describes; the name of its file is what messages call it."""
    path = Path(name)
    return _load(path, text, cache.keep_spec(cache.place(path.name, text), path.name, text))


def _load(path: Path, text: bytes, source: Path) -> LoadedOp:
    """Return the op of the spec at `path`, built where it has to be from the file `source`, which holds `text`."""
    out = cache.place(path.name, text)
    package = _build(source, out, "numpy")
    cache.keep_spec(out, path.name, text)
    return LoadedOp(path, text, out, package)


def _build(spec: Path, out: Path, backend: str) -> Path:
    """Return the package of `spec` below `out`, built for one backend."""
    try:
        results = builder.build_specs([spec], out, [backend], say=_LOG.warning)
    except SpecError as error:
        raise SpecError(_of_cache(error.diagnostics)) from error
    if not all(built.fresh for built in results):
        cache.make_room(out)
    return _package(results)


def _package(results: tuple[builder.Built, ...]) -> Path:
    (built,) = results
    if built.package is None or not built.ok:
        raise SpecError(_of_cache(built.diagnostics))
    return built.package


def _of_cache(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return what a build says, with the cache's hint where it could not write."""
    hinted = written.OTHER_FOLDER
    return tuple(replace(d, hint=cache.OTHER_FOLDER) if (d.hint or "").startswith(hinted) else d for d in found)
