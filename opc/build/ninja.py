"""Build steps as ninja files, and running ninja on them.

Every package has a `build/build.ninja` of its own; `<out>/.opc/build.ninja` holds the rules and takes in the packages' files,
so that one run of ninja builds any number of packages side by side and its log covers all of them. Paths are relative to the
output folder, where ninja runs. A changed compiler or flag, header or source rebuilds exactly what depends on it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import ninja

from opc.backends.base import BuildStep, Compile, Link, Script, Tool
from opc.build import headers, shared
from opc.build.locks import FOLDER
from opc.build.toolchain import CXX_FLAGS, Toolchain, runtime_include
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import install
from opc.records import dataclass

FILE = "build.ninja"
"""Name of the ninja file, in `FOLDER` and in each package's build folder."""

LOGS = (".ninja_log", ".ninja_deps")
"""What ninja itself keeps in `FOLDER`."""

IDENTITY = f"{FOLDER}/toolchain"
"""Names the compiler; everything compiled depends on it."""

# A library is loaded by whoever finds it, so it takes its name only when it is whole.
_RULES = """
rule cxx
  command = $cxx $cxxflags $flags -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = $out

rule cc
  command = $cxx $cflags $flags -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = $out

rule header
  command = $cxx $cxxflags $flags -x c++-header -MMD -MF $out.d -MT $out -c $in -o $out.tmp && mv -f $out.tmp $out
  depfile = $out.d
  deps = gcc
  description = $out

rule link
  command = $cxx $in $flags $linkflags -o $out.tmp && mv -f $out.tmp $out
  description = $out

rule script
  command = $python $in $out.tmp && mv -f $out.tmp $out
  description = $out

rule tool
  command = $tool $in -o $out
  description = $out

"""

_STATUS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
_PLACE = r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? +"
_ERROR = re.compile(rf"{_PLACE}(?:fatal )?error: (?P<message>.*)$")
_REQUIRED = re.compile(rf"{_PLACE}(?:recursively )?required (?:from|by) ")


@dataclass(frozen=True, slots=True)
class CompilerError:
    """One error message of a compiler; `required` are the places whose templates led to it, innermost first."""

    file: str
    line: int
    column: int
    message: str
    required: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """One build step that failed: what it was to make, its command, and what the command printed."""

    target: str
    command: str
    output: str

    @property
    def errors(self) -> Iterator[CompilerError]:
        """The compiler's error messages in order."""
        required: list[tuple[str, int, int]] = []
        for line in self.output.splitlines():
            if match := _REQUIRED.match(line):
                required.append((match["file"], int(match["line"]), int(match["column"] or 1)))
            elif match := _ERROR.match(line):
                place = (match["file"], int(match["line"]), int(match["column"] or 1))
                yield CompilerError(*place, match["message"], tuple(required))
                required = []


def target(package: str, backend: str) -> str:
    """Return the name of the ninja target of all that a backend builds in a package."""
    return f"{package}@{backend}"


def package_file(
    package: str,
    kernel: Sequence[BuildStep],
    steps: Mapping[str, Sequence[BuildStep]],
    ahead: Collection[headers.Header] = (),
    apart: Collection[Compile] = (),
) -> str:
    """Return a package's ninja file: the kernel's steps, those of each backend, and a target for each backend.

    The headers in `ahead` are compiled before the sources that begin with them, and the functions in `apart` once for all.
    """
    every = dict.fromkeys((*kernel, *(step for own in steps.values() for step in own)))
    begun = {output(step): header for step in every if (header := headers.of(step)) in ahead and header is not None}
    sharing = {output(step): one for step in every if (one := shared.functions(step)) in apart and one is not None}
    lines = [_edge(package, step, begun, sharing) for step in every]
    for backend, own in steps.items():
        made = " ".join(_path(package, output(step)) for step in own)
        lines.append(f"build {target(package, backend)}: phony {made}\n")
    return "\n".join(lines)


def header_file(header: headers.Header) -> str:
    """Return the ninja file of a header that is compiled ahead."""
    source = _path(str(runtime_include()), header.name)
    return f"build {_path(header.compiled)}: header {source} | {IDENTITY}\n  flags = {words(header.flags)}\n"


def shared_file(step: Compile) -> str:
    """Return the ninja file of an object that packages share."""
    flags = words(headers.flags(step))
    return f"build {_path(shared.path(step))}: cxx {_path(step.source)} | {IDENTITY}\n  flags = {flags}\n"


def main_file(toolchain: Toolchain, taken: Sequence[str]) -> str:
    """Return the main ninja file: rules, and the files of the folders of packages and headers taken in."""
    include = f"-I{runtime_include()}"
    variables = {
        "builddir": FOLDER,
        "cxx": words(toolchain.command),
        "cxxflags": words((*toolchain.cxx_flags, include)),
        "crossflags": words((*CXX_FLAGS, include)),
        "cflags": words((*toolchain.c_flags, include)),
        "linkflags": words(toolchain.link_flags),
        "python": words((sys.executable,)),
    }
    lines = [f"{name} = {value}\n" for name, value in variables.items()]
    lines += [_RULES]
    lines += [f"subninja {_path(folder, FILE)}\n" for folder in taken]
    return "".join(lines)


def output(step: BuildStep) -> str:
    """Return the file a step makes, relative to the package."""
    return step.object if isinstance(step, Compile) else step.output


def words(arguments: Sequence[str]) -> str:
    """Return arguments as ninja text that the shell takes apart into the same arguments."""
    return " ".join(shlex.quote(a) for a in arguments).replace("$", "$$")


def run(
    out: Path, targets: Sequence[str], lock: int, progress: Callable[[int, int, str], None] | None = None, jobs: int | None = None
) -> tuple[Failure, ...]:
    """Run ninja in `out` and return the steps that failed; all that do not depend on them are still built.

    `progress` is called with the number of finished steps, their total, and what was made. The descriptor `lock` is handed to
    ninja and its compilers, which so hold the lock for as long as they run.

    Raises:
        SpecError: when ninja itself can't run.
    """
    call = [_binary(), "-f", f"{FOLDER}/{FILE}", "-k", "0", "-j", str(jobs or _processors()), *targets]
    environment = {**os.environ, "NINJA_STATUS": "[%f/%t] ", "LC_ALL": "C.UTF-8"}
    lines: list[str] = []
    with subprocess.Popen(
        call, cwd=out, env=environment, pass_fds=(lock,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if progress is not None and (status := _STATUS.match(line)):
                    progress(int(status[1]), int(status[2]), status[3])
        except BaseException:
            # Ctrl-C reaches ninja as well, which stops its compilers and removes half-written files; the block's end waits.
            process.terminate()
            raise
    code = process.returncode
    failures = tuple(_failures(lines))
    if code != 0 and not failures:
        said = [line for line in lines if line.startswith("ninja: ") and "no work to do" not in line]
        raise SpecError([_refused(" ".join(said) or "\n".join(lines[-3:]) or f"exit status {code}")])
    return failures


def space_hint(text: str) -> str | None:
    """Return the hint for a tool's complaint about a full disk, or None when it is about something else."""
    full = ("No space left on device", "Disk quota exceeded", "File too large")
    return "free some space and run the command again" if any(f in text for f in full) else None


def _refused(message: str) -> Diagnostic:
    return Diagnostic(f"the build could not run: {message}", hint=space_hint(message))


def _edge(package: str, step: BuildStep, begun: Mapping[str, headers.Header], sharing: Mapping[str, Compile]) -> str:
    """Return one step as a ninja build statement.

    `begun` has the compiled header that the source of an object begins with, and `sharing` what makes functions that it lacks.
    """
    made, needs = _path(package, output(step)), IDENTITY
    match step:
        case Compile():
            rule, sources, flags = "cc" if step.language == "c" else "cxx", [step.source], (f"-I{package}", *headers.flags(step))
            flags += (shared.ELSEWHERE,) if step.object in sharing else ()
        case Link():
            rule, sources, flags = "link", list(step.objects), step.flags
        case Script():
            return f"build {made}: script {_path(package, step.script)}\n"
        case Tool():
            read = "".join(f" {_path(path)}" for path in step.reads)
            return f"build {made}: tool {_path(package, step.source)} |{read} {needs}\n  tool = {words(step.command)}\n"
    others = dict.fromkeys((*shared.of((step,)), *(sharing[made] for made in sources if made in sharing)))
    inputs = " ".join((*(_path(package, source) for source in sources), *(_path(shared.path(s)) for s in others)))
    own = {"flags": words(flags)}
    if step.compiler:
        own |= {"cxx": words(step.compiler), "cxxflags": "$crossflags", "linkflags": "-shared"}
    if isinstance(step, Link) and step.program:
        own["linkflags"] = ""
    if header := begun.get(output(step)):
        own["cxxflags"] = f"{words((f'-I{header.folder}', *header.memory))} $cxxflags"
        needs += f" {_path(header.compiled)}"
    if isinstance(step, Link):
        defining = dict.fromkeys(path for made in step.objects if made in begun for path in begun[made].objects)
        inputs += "".join(f" {_path(path)}" for path in defining)
    variables = "".join(f"  {name} = {value}\n" for name, value in own.items())
    return f"build {made}: {rule} {inputs} | {needs}\n{variables}"


def _path(*parts: str) -> str:
    return "/".join(parts).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _binary() -> str:
    """Return the ninja program that the ninja package brings, or the one on the search path."""
    own = Path(ninja.BIN_DIR) / "ninja"
    found = str(own) if own.is_file() else shutil.which("ninja")
    if found is None:
        raise SpecError(
            [Diagnostic("the ninja program was not found", hint=f"reinstall it: {install('--force-reinstall', 'ninja')}")]
        )
    return found


def _failures(lines: Sequence[str]) -> Iterator[Failure]:
    """Yield the failed steps in ninja's output: `FAILED: [code=1] target`, the command, and what it printed."""
    starts = [i for i, line in enumerate(lines) if line.startswith("FAILED: ")]
    for start in starts:
        end = start + 2
        while end < len(lines) and not _STATUS.match(lines[end]) and not lines[end].startswith(("FAILED: ", "ninja: ")):
            end += 1
        made = re.sub(r"^\[code=\d+\] ", "", lines[start].removeprefix("FAILED: ")).strip()
        command = lines[start + 1] if start + 1 < len(lines) else ""
        yield Failure(made, command, "\n".join(lines[start + 2 : end]))
