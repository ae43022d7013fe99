"""The emulated SDK for tests: built once into `build/`, and commands run as in a shell that has sourced `enable.sh`."""

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
def sdk() -> Path:
    """The folder of the SDK, built where it isn't yet."""
    destination = REPOSITORY / "build" / "emulation" / "poplar"
    subprocess.run([sys.executable, str(EMULATION / "build.py"), str(destination)], check=True)
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
