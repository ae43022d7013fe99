"""The emulated SDK for tests: that of `opc env create popart`, or one built once into `build/`; commands run with it enabled."""

import functools
import os
import shlex
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EMULATION = REPOSITORY / "runtime" / "emulation" / "poplar"
SAMPLES = Path(__file__).parent / "samples"


@functools.cache
def builder() -> tuple[str, Path]:
    """The interpreter that the SDK is built with, and the folder it is built into: those of the environment, where it is made."""
    environment = Path(os.environ.get("OPC_ENVIRONMENTS", REPOSITORY / ".opc" / "env")) / "popart"
    python = environment / "venv" / "bin" / "python"
    if (environment / "made").is_dir() and python.exists():
        return str(python), environment / "made"
    return sys.executable, REPOSITORY / "build" / "emulation" / "poplar"


@functools.cache
def sdk() -> Path:
    """The folder of the SDK, built where it isn't yet."""
    python, destination = builder()
    subprocess.run([python, str(EMULATION / "build.py"), str(destination)], check=True)
    return destination


def shell(command: str, cwd: Path, check: bool = True) -> str:
    """What a command prints, on both streams, in a shell that has sourced `enable.sh` and has this interpreter as `python`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = f"set -e; source {shlex.quote(str(sdk() / 'enable.sh'))}; {command}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=cwd,
        env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stdout
    else:
        assert done.returncode != 0, done.stdout
    return done.stdout


def python(script: str, cwd: Path, check: bool = True) -> str:
    """What a script prints, as `shell`."""
    file = cwd / "script.py"
    file.write_text(script)
    return shell("python script.py", cwd, check)
