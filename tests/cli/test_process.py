"""opc as a process: terminals, pipes, interrupts, and what a command loads."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, spec, write
from tests.faults.mutants import COMMANDS

SPECS = Path(__file__).resolve().parents[2] / "specs"


def test_output_that_nobody_reads(tmp_path: Path) -> None:
    command = f"{sys.executable} -m opc schema | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout == "{\n"
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\r\x08b", "a\x9bb", "a\u202eb", "a\nb:1:1: error: c", "a\udcffb"])
def test_names_are_no_commands_of_a_terminal(tmp_path: Path, name: str) -> None:
    """The name of a file stands in one line of what is printed, without what moves the cursor or turns the text."""
    write(tmp_path / f"{name}.yaml", (SPECS / "leaky_relu.yaml").read_text())
    write(tmp_path / "some" / f"{name}.yaml", BAD + "kernel: |\n  y = z\n")
    for command in (
        ("check", f"{name}.yaml"),
        ("check", f"some/{name}.yaml"),
        ("check", f"none/{name}.yaml"),
        ("fmt", f"{name}.yaml"),
        ("fmt", "--diff", f"some/{name}.yaml"),
        ("build", f"{name}.yaml", "-o", name, "-b", "numpy"),
        ("init", name),
    ):
        done = subprocess.run((sys.executable, "-m", "opc", *command), capture_output=True, cwd=tmp_path, check=False)
        said = (done.stdout + done.stderr).decode()
        assert said, command
        assert not COMMANDS.search(said), (command, said)
        assert not [line for line in said.splitlines() if line.startswith("b")], (command, said)


def test_diagnostics_are_coloured_on_a_terminal_only(tmp_path: Path) -> None:
    write(tmp_path / "bad.yaml", BAD + "kernel: |\n  y = z\n")

    def err(environment: dict[str, str]) -> str:
        parent, child = pty.openpty()
        command = [sys.executable, "-m", "opc", "check", "bad.yaml"]
        subprocess.run(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=child, env={**os.environ, **environment}, check=False
        )
        os.close(child)
        text = b""
        try:
            while part := os.read(parent, 4096):
                text += part
        except OSError:
            # A closed terminal ends in an error on Linux.
            pass
        os.close(parent)
        return text.decode()

    assert "\033[1;31merror:\033[0m" in err({"NO_COLOR": "", "TERM": "xterm"})
    assert "\033" not in err({"NO_COLOR": "1", "TERM": "xterm"})


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.yaml")
    # What runs the tests may ignore Ctrl-C, as shells let their background jobs do, and a child inherits that.
    command = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from opc.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "check", "slow.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    # Reading a pipe nobody writes to waits for ever: the command is inside its work by the time of the signal.
    with open(tmp_path / "slow.yaml", "w"):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert err == "interrupted\n"


def test_ctrl_c_ends_quietly_while_the_command_is_imported(tmp_path: Path) -> None:
    command = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Impatient())
from opc.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_opc_is_a_module_to_run(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "opc", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("opc ")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], {"yaml", "pydantic", "jinja2", "numpy", "rich", "onnx", "torch", "cffi", "hypothesis"}),
        (["generate", "leaky_relu.yaml"], {"numpy", "onnx", "torch", "onnxruntime", "hypothesis"}),
    ],
)
def test_commands_load_only_what_they_need(tmp_path: Path, arguments: list[str], unwanted: set[str]) -> None:
    """What a command imports is most of the time it takes; `opc bench` measures that."""
    spec(tmp_path)
    code = (
        "import sys\nfrom opc.cli.main import main\n"
        f"sys.argv = ['opc', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('loaded:', *sorted({m.partition('.')[0] for m in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded:")[2].split())
    assert "typer" in loaded
    assert not loaded & unwanted


def test_the_quick_way_of_build_imports_nothing_heavy(tmp_path: Path) -> None:
    """A build with nothing to do must not load a spec, a backend or the generator."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom opc.cli import build\n"
        "from opc.build import stamp\nstamp.fresh_package = lambda spec, out, backends: Path('p')\n"
        "build.build([Path('leaky_relu.yaml')])\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules} & {'yaml', 'pydantic', 'jinja2', 'numpy', 'rich'}))\n"
    )
    spec(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "1 package: nothing changed\n\n"


def test_what_is_shown_does_not_depend_on_the_order_of_sets() -> None:
    command = [sys.executable, "-m", "opc", "show", str(SPECS / "lstm.yaml"), "--gradient", "--sharding"]
    found = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    """What names all of its files by whole paths needs none, and the rest is told what it lacks."""
    one = spec(tmp_path)
    program = (
        "import os, subprocess, sys, numpy, opc\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd())\n"
        "print(opc.load(sys.argv[1])(numpy.ones(1)))\n"
        "for more in (['-o', sys.argv[2]], []):\n"
        "    call = [sys.executable, '-m', 'opc', 'generate', sys.argv[1], '--backend', 'numpy', *more]\n"
        "    print(subprocess.run(call, capture_output=True, text=True).stderr, end='')\n"
    )
    env = {**os.environ, "OPC_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(SPECS.parent)}
    call = [sys.executable, "-c", program, str(one), str(tmp_path / "out")]
    done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    said = "error: cannot make the folder generated: No such file or directory\n  hint: choose another output folder with -o\n"
    assert (done.stdout, done.stderr) == ("[1.]\n" + said, "")
    assert (tmp_path / "out/leaky_relu/manifest.json").exists()
