"""Headers that many packages begin with, compiled once: for an output folder, or for an environment and all output folders.

GCC takes `opc/x.h.gch` instead of `opc/x.h` where that lies in a folder it searches first and was made by the same compiler with
the same options; else it reads the header. Other compilers have no such rule.

Those of an output folder are made by ninja with all else, and change no object. One of an environment is made before, under a
lock of its own, with the signatures of all that was read for it: it is taken while these are what they were.

Of the latter, inline functions are compiled once too: in each source they take longer than its own. GCC's `#pragma interface`
says of a header that what it defines inline is in another object, and `#pragma implementation` that it is in this one; line
markers have them stand in headers that are not ours ("C++ Interface and Implementation Pragmas" in GCC's manual). GCC still takes
up their bodies at the end of each source, with the templates that these use, so what is compiled ahead are copies of the headers
that only declare functions.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opc.backends.base import BuildStep, Compile
from opc.backends.kernel.backend import only_variant
from opc.build import files, locks, stamp
from opc.build.declared import NotUnderstood, declared
from opc.build.toolchain import Toolchain, runtime_include
from opc.diagnostics import SpecError
from opc.records import dataclass

FOLDER = ".opc/headers"
"""Folder of an output folder for compiled headers, a folder each."""

LEAST = 4
"""As many packages must begin with a header that it is worth being compiled ahead: that takes longer than to read it."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the runtime and the arguments that all who begin with it are compiled with.

    `kept` is the folder of an environment that it is kept in, empty for one of an output folder; `also` are headers that it has
    there, `inlined` folders of headers whose inline functions are compiled there, beside opc's, and `over` another kept header,
    which has compiled those of what both read.
    """

    name: str
    flags: tuple[str, ...]
    kept: str = ""
    also: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    over: Header | None = None

    @property
    def folder(self) -> str:
        """The folder that is searched for it, relative to the output folder."""
        under = () if self.over is None else (self.over.folder,)
        told = "\0".join((str(runtime_include()), self.name, *self.flags, *self.also, *self.inlined, *under))
        return f"{self.kept or FOLDER}/{hashlib.sha256(told.encode()).hexdigest()[:16]}"

    @property
    def compiled(self) -> str:
        """The compiled header, relative to the output folder."""
        return f"{self.folder}/{self.name}.gch"

    @property
    def object(self) -> str:
        """The object with the inline functions, of a kept header."""
        return f"{self.folder}/{self.name}.o"

    @property
    def objects(self) -> tuple[str, ...]:
        """All objects that a library needs whose sources begin with this: none but for a kept header."""
        under = () if self.over is None else self.over.objects
        return (self.object, *under) if self.kept else ()

    @property
    def memory(self) -> tuple[str, ...]:
        """Arguments of GCC for what begins with it: a kept one fills so much memory that garbage would be looked for at once."""
        return ("--param", "ggc-min-heapsize=600000") if self.kept else ()

    @property
    def read(self) -> Path:
        """What tells how a kept header was made: the compiler, and the signatures of all files read."""
        return Path(f"{self.compiled}.json")


def flags(step: Compile) -> tuple[str, ...]:
    """Return the arguments of a step's compiler call: glue in libraries for this machine alone is not optimised."""
    return (*step.flags, "-O0") if step.glue and only_variant() is not None else step.flags


def of(step: BuildStep) -> Header | None:
    """Return the header that a step's source begins with, if it can be compiled ahead."""
    if not isinstance(step, Compile) or not step.header or step.compiler:
        return None
    over = None if step.over is None else of(step.over)
    return Header(step.header, flags(step), step.kept, step.also, step.inlined, over)


def worth(packages: Iterable[Iterable[BuildStep]], out: Path, toolchain: Toolchain) -> frozenset[Header]:
    """Return the headers to be compiled ahead: those of many packages, and those that are there already.

    Those of environments are compiled here.
    """
    if not toolchain.precompiles:
        return frozenset()
    found = Counter(header for steps in packages for header in {of(step) for step in steps} if header is not None)
    own = [h for h, count in found.items() if not h.kept and (count >= LEAST or (out / h.compiled).exists())]
    kept = [h for h in found if h.kept]
    if kept:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            own += [h for h, there in zip(kept, pool.map(lambda h: keep(h, toolchain), kept), strict=True) if there]
    return frozenset(own)


def keep(header: Header, toolchain: Toolchain) -> bool:
    """Compile a header of an environment unless that was done, and nothing has changed since; say whether it is there.

    It is not where it doesn't compile, or can't be written: what begins with it then reads it, and says why.
    """
    try:
        if header.over is not None and not keep(header.over, toolchain):
            return False
        if _is_current(header, toolchain):
            return True
        with locks.hold(Path(header.folder)):
            if _is_current(header, toolchain):
                return True
            files.make_folder(Path(header.compiled).parent)
            for left in (header.read, Path(header.compiled)):
                left.unlink(missing_ok=True)
            start = time.time_ns()
            read = _compile(header, toolchain)
            told = {"toolchain": _told(toolchain), "files": stamp.signatures(read)}
            if any(os.stat(path).st_mtime_ns >= start for path in read):
                return False  # it may be of the file as it was before
            header.read.write_text(json.dumps(told, indent=1, sort_keys=True))
            return True
    except (OSError, SpecError, subprocess.CalledProcessError):
        return False


def _compile(header: Header, toolchain: Toolchain) -> list[str]:
    """Compile a kept header and the object with its inline functions; return the files read.

    Raises:
        CalledProcessError: when it doesn't compile.
    """
    compiled = Path(header.compiled)
    command = (*toolchain.command, *toolchain.cxx_flags, *header.memory)
    searched = (f"-I{runtime_include()}", *header.flags)
    included = "".join(f"#include {_quoted(name)}\n" for name in (header.name, *header.also))

    def run(*arguments: str | Path) -> str:
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=True).stdout

    def make(text: str, name: str, language: str, made: str, *first: str) -> None:
        written, new = compiled.with_name(name), f"{made}.tmp"
        written.write_text(text)
        run(*first, *searched, "-x", language, "-c", written, "-o", new)
        os.replace(new, made)

    def ahead(copies: Mapping[str, str]) -> None:
        text = "".join(_marked(copy, "interface", header.name) for copy in copies.values())
        make(f'{text}# 1 "ahead"\n{included}', f"{compiled.name}.h", "c++-header", header.compiled, f"-I{header.folder}")

    source = compiled.with_name(f"{compiled.name}.all.h")
    source.write_text(included)
    read = [path for path in _dependencies(run(*searched, "-x", "c++", "-M", source)) if path != str(source)]
    copies = {
        path: f"{header.folder}/{path[len(f) + 1 :]}" for path in read for f in _folders(header) if path.startswith(f"{f}/")
    }
    known = json.loads(header.over.read.read_text())["files"] if header.over is not None else ()
    defined = "".join(_marked(path, "interface", "over" if path in known else header.name) for path in copies)
    text = f'#pragma implementation {_quoted(header.name)}\n{defined}# 1 "ahead"\n{included}'
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(make, text, f"{compiled.name}.cpp", "c++", header.object)
        _copy(copies, only_declared=True)
        try:
            ahead(copies)
        except subprocess.CalledProcessError:  # then with all that they define
            _copy(copies, only_declared=False)
            ahead(copies)
        pending.result()
    return read


def _folders(header: Header) -> tuple[str, ...]:
    """Return the folders of the headers whose inline functions are compiled once."""
    return (str(runtime_include()), *header.inlined)


def _copy(copies: Mapping[str, str], *, only_declared: bool) -> None:
    """Write the copies of headers, each whole where it isn't understood. Sources find them first, and so each header once."""
    for path, copy in copies.items():
        text = Path(path).read_text()
        with contextlib.suppress(NotUnderstood):
            text = declared(text) if only_declared else text
        files.make_folder(Path(copy).parent)
        Path(copy).write_text(text)


def _marked(path: str, pragma: str, name: str) -> str:
    """Return a pragma that stands in a header."""
    return f"# 1 {_quoted(path)}\n#pragma {pragma} {_quoted(name)}\n"


def _quoted(text: str) -> str:
    """Return a literal of C."""
    return json.dumps(text, ensure_ascii=False)


def _is_current(header: Header, toolchain: Toolchain) -> bool:
    try:
        told = json.loads(header.read.read_text())
    except (OSError, ValueError):
        return False
    same = told["toolchain"] == _told(toolchain) and all(stamp.signature(p) == s for p, s in told["files"].items())
    return same and all(os.path.exists(path) for path in (header.compiled, header.object))


def _told(toolchain: Toolchain) -> list[str]:
    return [toolchain.identity, *toolchain.cxx_flags]


def _dependencies(rule: str) -> Iterator[str]:
    """Yield the files that a rule of make, as compilers write it, names behind its target."""
    for name in re.findall(r"(?:\\.|[^\s\\])+", rule.partition(":")[2].replace("\\\n", " ")):
        yield re.sub(r"\\(.)", r"\1", name).replace("$$", "$")


__all__ = ["FOLDER", "LEAST", "Header", "flags", "keep", "of", "worth"]
