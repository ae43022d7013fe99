"""`opc.load`: a spec as a Python function, built on first use and kept in the user's cache."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from opc.backends import package as packages
from opc.build import builder, files, stamp
from opc.diagnostics import Diagnostic, SpecError

_LOG = logging.getLogger("opc")
_KEY_LENGTH = 20


FRAMEWORKS = ("torch", "paddle", "mindspore")
"""Modules with a class `Tensor`, whose tensors are answered with tensors; backends have the same names."""


class LoadedOp:
    """An op as a function: NumPy arrays in and out; or tensors of torch, Paddle or MindSpore in and out, with gradients.

    Its signature and documentation are those of the generated function. `numpy`, `torch`, `paddle` and `mindspore` are the
    generated modules, of which the first and the second also hold the gradient and the other derived ops as functions; a
    framework's is built when it is first needed.
    """

    def __init__(self, spec: Path, out: Path, package: Path) -> None:
        """Import the NumPy functions of a package built below `out` from `spec`, whose copy lies in `out`."""
        self._spec = spec
        self._out = out
        self._package = package
        import numpy as np

        self._array = np.ndarray
        self.numpy: ModuleType = packages.load(package, "numpy")
        self.__name__ = self.__qualname__ = package.name
        self._function: Callable[..., Any] = getattr(self.numpy, package.name)
        self.__doc__ = self._function.__doc__
        self.__wrapped__ = self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op; see the instance's own documentation."""
        # The usual call is told by its first argument. Attributes are never tensors, so that otherwise any tensor decides.
        if not (args and type(args[0]) is self._array):
            for name in FRAMEWORKS:
                # A tensor's framework has been imported; while that is going on it has no class yet.
                tensor = getattr(sys.modules.get(name), "Tensor", None)
                if tensor is not None and any(isinstance(value, tensor) for value in (*args, *kwargs.values())):
                    return getattr(getattr(self, name), self.__name__)(*args, **kwargs)
        return self._function(*args, **kwargs)

    @cached_property
    def torch(self) -> ModuleType:
        """The generated torch module.

        Raises:
            SpecError: when the op can't be built for torch.
        """
        return self._framework("torch")

    @cached_property
    def paddle(self) -> ModuleType:
        """The generated Paddle module.

        Raises:
            SpecError: when the op can't be built for Paddle.
        """
        return self._framework("paddle")

    @cached_property
    def mindspore(self) -> ModuleType:
        """The generated MindSpore module.

        Raises:
            SpecError: when the op can't be built for MindSpore.
        """
        return self._framework("mindspore")

    def _framework(self, name: str) -> ModuleType:
        spec = self._out / self._spec.name
        _build(spec, self._out, name)
        try:
            return packages.load(self._package, name)
        except ImportError:
            # A framework keeps an op until the process ends: one of this name, loaded before its spec was changed, is in the way.
            return packages.load(self._build_beside(spec, name), name)

    def _build_beside(self, spec: Path, framework: str) -> Path:
        """Return a package of the same op in a domain, and so a framework's namespace, of its own."""
        from opc.pipeline import load_family

        family = load_family(spec)
        domain = f"{family.forward.domain}.r{self._out.name[-_KEY_LENGTH:]}"
        ops = ("forward", "backward", "backward_backward", "jvp", "backward_jvp")
        renamed = {name: replace(op, domain=domain) for name in ops if (op := getattr(family, name)) is not None}
        built = builder.build_families([replace(family, **renamed)], self._out / "reloaded", [framework], say=_LOG.warning)
        return _package(built)

    def __repr__(self) -> str:
        return f"<op {self.__name__} from {self._spec}>"

    def __reduce__(self) -> tuple[Callable[[str], LoadedOp], tuple[str]]:
        return load, (str(self._spec),)


def load(spec: str | os.PathLike[str]) -> LoadedOp:
    """Return the op that a spec describes as a function, which answers tensors with tensors and arrays with arrays.

    The first call builds it, which takes seconds; later ones, in this process or another, find it in the cache, as long as
    neither the spec, opc nor the compiler changes. The cache is `$OPC_CACHE_DIR`, else `$XDG_CACHE_HOME/opc`, else
    `~/.cache/opc`.

        leaky_relu = opc.load("specs/leaky_relu.yaml")
        leaky_relu(numpy.array([-1.0, 2.0]), alpha=0.1)
        leaky_relu(torch.tensor([-1.0, 2.0], requires_grad=True)).sum().backward()
        leaky_relu(paddle.to_tensor([-1.0, 2.0]))

    Raises:
        SpecError: with every mistake in the spec, or the reason it can't be built.
    """
    path = Path(spec).absolute()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SpecError([Diagnostic(f"cannot read {path}: {error.strerror}")]) from error
    out = cache_folder() / f"{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)[:40]}-{_key(path.name, text)}"
    package = _build(path, out, "numpy")
    # The torch module may be built much later, when the user's file says something else.
    copy = out / path.name
    if files.read(copy) is None:
        from opc.build import locks, ninja

        with locks.hold(out / ninja.FOLDER, _LOG.warning):
            files.write(copy, text.decode("utf-8"), package / files.BUILD)
    return LoadedOp(path, out, package)


def cache_folder() -> Path:
    """Return the folder for built ops, making it where it is missing.

    Raises:
        SpecError: when it can't be made.
    """
    named = os.environ.get("OPC_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(named) if named else (Path(home) if home else Path.home() / ".cache") / "opc"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        hint = "set OPC_CACHE_DIR to a folder that can be written"
        raise SpecError([Diagnostic(f"cannot make the cache folder: {error}", hint=hint)]) from error
    return folder.absolute()


def _key(name: str, text: bytes) -> str:
    """Return what tells apart packages that can't share a folder: by spec, opc and interpreter.

    A changed compiler needs no folder of its own: the build system sees it and rebuilds.
    """
    content = hashlib.sha256()
    for part in (name, sys.version, sys.prefix, platform.machine()):
        content.update(part.encode(errors="surrogateescape") + b"\0")
    content.update(text)
    for own in sorted(stamp.own_files()):
        content.update(Path(own).read_bytes())
    return content.hexdigest()[:_KEY_LENGTH]


def _build(spec: Path, out: Path, backend: str) -> Path:
    """Return the package of `spec` below `out`, built for one backend."""
    return _package(builder.build_specs([spec], out, [backend], say=_LOG.warning))


def _package(results: tuple[builder.Built, ...]) -> Path:
    (built,) = results
    if built.package is None or not built.ok:
        raise SpecError(built.diagnostics)
    return built.package
