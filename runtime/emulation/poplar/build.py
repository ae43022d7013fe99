"""Builds the emulated Poplar SDK into a folder: `python build.py DEST`.

DEST gets `include`, `lib`, `bin`, `python` and `enable.sh`, laid out like an SDK, so that the published commands (`g++ -lpopart`,
`popc`, `make`, `cppimport`, `python run_x.py`) work after `source DEST/enable.sh`. The module `popart_core` is compiled against
the pybind11 of the interpreter that runs this file, by $CXX or g++. A second build of the same sources does nothing; several at
once wait for each other; DEST is never seen half written.
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Each library with those that it needs.
LIBRARIES = {
    "poplar": (),
    "poputil": ("poplar",),
    "popops": ("poputil", "poplar"),
    "poplin": ("popops", "poputil", "poplar"),
    "popnn": (),
    "poprand": (),
    "popart": ("poplin", "popops", "poputil", "poplar"),
}
MODULE = "popart_core"
FLAGS = ("-std=c++14", "-fPIC", "-DONNX_NAMESPACE=onnx")
# pybind11's templates fill hundreds of megabytes: g++ collects garbage for a quarter of the time where it isn't told to wait.
MEMORY = ("--param", "ggc-min-heapsize=600000")
# In a built SDK the libraries define what the headers declare: an op is compiled in a fraction of the time.
CONFIG = "include/poplar/detail/config.hpp"
LIBRARIES_USED = "POPLAR_EMULATION_LIBRARIES"
BAKED = f"#define {LIBRARIES_USED}\n"
# What functions start with that libraries have; config.hpp says more of it.
IN_LIBRARY = "IN_LIBRARY"
TOKEN = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[(){}]")
STAMP = ".stamp"

ENABLE = """\
# Source this file to use the emulated Poplar SDK: `source enable.sh`. It is an emulation on the CPU, no IPU is ever used.
_sdk="$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)"
export POPLAR_SDK_ENABLED="$_sdk"
export POPART_PREFIX="$_sdk"
export PATH="$_sdk/bin:$PATH"
export CPATH="$_sdk/include${CPATH:+:$CPATH}"
export LIBRARY_PATH="$_sdk/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
export LD_LIBRARY_PATH="$_sdk/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PYTHONPATH="$_sdk/python${PYTHONPATH:+:$PYTHONPATH}"
export CMAKE_PREFIX_PATH="$_sdk${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
unset _sdk
"""

# What `find_package` of CMake finds: the packages of the SDK.
PACKAGES = ("poplar", "poplibs", "popart")

POPRT = """\
#!/bin/sh
exec "${{PYTHON:-{python}}}" -m poprt.cli "$@"
"""


def main(arguments: list[str]) -> int:
    """The command: returns its exit status."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python build.py DEST", file=sys.stderr)
        return 2
    try:
        build(Path(arguments[0]))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class BuildError(Exception):
    """What is missing, or what the compiler said."""


def build(destination: Path) -> Path:
    """Builds the SDK into `destination` unless it is there already; returns `destination`, made absolute."""
    destination = destination.absolute()
    compiled = _stamp(("include", "src"))
    stamp = compiled + "\n" + _stamp(("bin", "cmake", "python"))
    if _read(destination / STAMP) == stamp:
        return destination
    destination.parent.mkdir(parents=True, exist_ok=True)
    with _locked(destination.with_name(destination.name + ".lock")):
        if _read(destination / STAMP) == stamp:
            return destination
        # What a build that was killed has left.
        for left in (
            *destination.parent.glob(f"{destination.name}.*.new"),
            *destination.parent.glob(f"{destination.name}.*.old"),
        ):
            shutil.rmtree(left, ignore_errors=True)
        made = destination.with_name(f"{destination.name}.{os.getpid()}.new")
        try:
            _make(made, destination if _read(destination / STAMP).partition("\n")[0] == compiled else None)
            (made / STAMP).write_text(stamp)
            _replace(destination, made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return destination


def _make(made: Path, same: Path | None) -> None:
    """Writes the SDK into the folder `made`; libraries are taken from `same`, an SDK of the same sources, if there is one."""
    made.mkdir()
    for folder in ("include", "bin", "python"):
        if (HERE / folder).is_dir():
            shutil.copytree(HERE / folder, made / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (made / CONFIG).write_text(BAKED + (made / CONFIG).read_text())
    for header in (made / "include").rglob("*.hpp"):
        if header != made / CONFIG:
            header.write_text(_without_bodies(header.read_text()))
    (made / "bin").mkdir(exist_ok=True)
    poprt = made / "bin" / "poprt"
    poprt.write_text(POPRT.format(python=sys.executable))
    poprt.chmod(0o755)
    (made / "enable.sh").write_text(ENABLE)
    module = MODULE + sysconfig.get_config_var("EXT_SUFFIX")
    if same:
        shutil.copytree(same / "lib", made / "lib", ignore=shutil.ignore_patterns("cmake"))
        shutil.copy2(same / "python" / module, made / "python" / module)
    else:
        (made / "lib").mkdir()
        _compile(made, module)
    for name in PACKAGES:
        folder = made / "lib" / "cmake" / name
        folder.mkdir(parents=True)
        shutil.copy2(HERE / "cmake" / f"{name}-config.cmake", folder)


def _without_bodies(text: str) -> str:
    """Return a header in which the functions that start with IN_LIBRARY are only declared."""
    out, end = [], 0
    while (start := text.find(f"{IN_LIBRARY} ", end)) >= 0:
        out.append(text[end:start])
        start += len(IN_LIBRARY) + 1
        at = text.index("(", start)
        if text.startswith("()", at) and text[:at].endswith("operator"):
            at += 2
        at = _closing(text, at)
        # To the body, by way of what a constructor initialises.
        stop = at
        while text[stop] not in "{=:":
            stop += 1
        out.append(text[start:stop].rstrip() + ";")
        if text[stop] == "=":
            end = text.index(";", stop) + 1
            continue
        while text[stop] == ":" or text[stop] == ",":
            stop = _closing(text, min(i for i in (text.find(c, stop) for c in "({") if i >= 0))
            while text[stop].isspace():
                stop += 1
        end = _closing(text, stop)
    return "".join([*out, text[end:]])


def _closing(text: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at `start`."""
    depth = 0
    for found in TOKEN.finditer(text, start):
        depth += (found[0] in "({") - (found[0] in ")}")
        if depth == 0:
            return found.end()
    raise BuildError("A header has a bracket that isn't closed.")


def _compile(made: Path, module: str) -> None:
    """Compiles the libraries and the module, each translation unit on its own, as many at once as there are CPUs."""
    flags = [*FLAGS, "-I", str(made / "include")]
    pybind = ["-fvisibility=hidden", "-I", sysconfig.get_path("include"), "-I", _pybind11()]
    # The longest first, so that none is left alone at the end.
    # What runs for each element is optimised; PopART and the bindings run once for each op of a graph.
    units = {MODULE: [*flags, *pybind, *MEMORY]}
    objects = made / "objects"
    objects.mkdir()
    # A library sees its own headers whole.
    for name in LIBRARIES:
        own = objects / "include" / name
        own.mkdir(parents=True)
        if (HERE / "include" / name).is_dir():
            (own / name).symlink_to(HERE / "include" / name)
        optimised = [] if name == "popart" else ["-O1"]
        units[name] = [*FLAGS, f"-D{LIBRARIES_USED}=", *optimised, "-I", str(own), "-I", str(made / "include")]
    jobs = [[*unit, "-c", str(_source(name)), "-o", str(objects / f"{name}.o")] for name, unit in units.items()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(_run, jobs))
    folder = ["-L", str(made / "lib")]
    for name, needs in LIBRARIES.items():
        libraries = [*folder, "-Wl,--no-as-needed", *(f"-l{need}" for need in needs), "-ldl", "-pthread"]
        shared = ["-shared", "-Wl,--no-undefined", f"-Wl,-soname,lib{name}.so", "-Wl,-rpath,$ORIGIN", str(objects / f"{name}.o")]
        _run([*shared, *libraries, "-o", str(made / "lib" / f"lib{name}.so")])
    libraries = [*folder, "-Wl,-rpath,$ORIGIN/../lib", *(f"-l{name}" for name in LIBRARIES["popart"]), "-lpopart"]
    _run(["-shared", str(objects / f"{MODULE}.o"), *libraries, "-ldl", "-pthread", "-o", str(made / "python" / module)])
    shutil.rmtree(objects)


def _source(name: str) -> Path:
    path = HERE / "src" / f"{name}.cpp"
    return path if path.is_file() else HERE / "src" / "empty.cpp"


def _run(arguments: list[str]) -> None:
    """Runs the compiler; raises BuildError with what it printed where it fails."""
    command = [*_compiler(), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{shlex.join(command)}\n{done.stdout}")


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if not shutil.which(command[0]):
        raise BuildError(f"No C++ compiler named {command[0]}: install g++, or say in CXX which to use.")
    return command


def _pybind11() -> str:
    try:
        import pybind11
    except ImportError:
        raise BuildError(f"{sys.executable} has no pybind11: install it with `pip install pybind11`.") from None
    return str(pybind11.get_include())


def _stamp(folders: tuple[str, ...]) -> str:
    """A hash of all files in the folders, of this file, the compiler, its flags, pybind11 and the interpreter."""
    version = subprocess.run([*_compiler(), "--version"], capture_output=True, text=True, check=False).stdout
    facts = (*_compiler(), *FLAGS, version, _pybind11(), sys.version, sys.executable)
    digest = hashlib.sha256("\0".join(facts).encode())
    files = [
        path for folder in folders for path in (HERE / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    for path in sorted([*files, Path(__file__)]):
        content = path.read_bytes()
        digest.update(f"{path.name if path == Path(__file__) else path.relative_to(HERE)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock of the operating system, which ends with the process that holds it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _replace(destination: Path, made: Path) -> None:
    """Puts `made` where `destination` is. Libraries of the old folder that a process has loaded stay usable to it."""
    old = destination.with_name(f"{destination.name}.{os.getpid()}.old")
    if destination.exists():
        destination.rename(old)
    made.rename(destination)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
