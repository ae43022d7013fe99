"""The driver: as far as is asked for, and the same by whichever way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opc.backends import registry
from opc.build.generate import prepare
from opc.compiler import Stage, compile_spec, package_of
from opc.diagnostics import Diagnostics, SpecError
from opc.ir.budget import within_depth
from opc.lower.lower import lower
from opc.pipeline import derived_family, forward_op, load_family
from opc.spec.loader import loads
from opc.testing.bench.compiler import CHAINS

SPEC = Path(__file__).parents[1] / "specs" / "dual_residual.yaml"


def test_a_spec_is_compiled_as_far_as_is_asked_for() -> None:
    family = compile_spec(SPEC, to=Stage.FAMILY)
    assert (family.family, family.programs, family.package.files) == (load_family(SPEC), {}, {})
    programs = compile_spec(SPEC, to=Stage.PROGRAMS)
    assert programs.programs == {op.name: lower(op) for op in programs.family.ops}
    assert programs.package.files == {}
    files = compile_spec(SPEC).package.files
    assert {path.split("/")[0] for path in files} == {"__init__.py", "shape.py", "kernel", "tests"}


def test_a_package_is_that_of_its_family_and_what_generate_prepares(tmp_path: Path) -> None:
    backends = registry.select(["numpy", "onnx"])
    package = compile_spec(SPEC, backends).package
    assert [b.name for b in package.backends] == ["numpy", "onnx"]
    assert package.files == package_of(load_family(SPEC), backends).files
    assert package.files == prepare(SPEC, tmp_path, backends).package.files


def test_a_package_does_not_depend_on_the_order_of_sets_or_on_what_was_compiled_before() -> None:
    names = ("top1_routing", "grid_sample", "embedding_bag", "attention", "segment_softmax", "cumsum", "onnx/cum_prod")
    code = (
        "import hashlib, sys\nfrom pathlib import Path\n"
        "from opc.backends import registry\nfrom opc.compiler import compile_spec\n"
        "chosen = registry.select(['numpy', 'onnx', 'jax', 'cuda', 'popart'])\n"
        "found = {}\n"
        "for name in sys.argv[1:]:\n"
        f"    for path, text in compile_spec(Path({str(SPEC.parent)!r}, name + '.yaml'), chosen).package.files.items():\n"
        "        found[f'{name}/{path}'] = hashlib.sha256(text.encode()).hexdigest()\n"
        "print(*sorted(found.items()), sep='\\n')\n"
    )
    runs = [("0", names), ("1", names[::-1])]
    found = [
        subprocess.run(
            [sys.executable, "-c", code, *order],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        for seed, order in runs
    ]
    assert len(found[0]) > 100
    assert [*set(found[0]) ^ set(found[1])] == []


def test_an_op_with_native_code_has_no_program_of_its_own() -> None:
    compiled = compile_spec(SPEC.parent / "native" / "inverse.yaml", to=Stage.PROGRAMS)
    assert compiled.family.name not in compiled.programs
    assert len(compiled.programs) == len(compiled.family.ops) - 1


def test_warnings_are_recorded_and_mistakes_raised() -> None:
    text = "op: f\ndomain: t\nversion: 1\ndoc: D.\ntypes: {T: [float32]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n"
    found = Diagnostics()
    compiled = compile_spec(loads(text + "  y[n] = x[n]\n", "f.yaml", whole=False), to=Stage.FAMILY, found=found)
    assert (compiled.family.name, found.items) == ("f", [])
    with pytest.raises(SpecError, match=r"f\.yaml:9:"):
        compile_spec(loads(text + "  y[n] = x[n + 1]\n", "f.yaml", whole=False), to=Stage.FAMILY)


def test_a_body_of_two_hundred_steps_is_compiled() -> None:
    """In the end it is one expression, deeper than Python's own limit of frames allows."""
    assert len(compile_spec(loads(CHAINS["points"].text(200), "long.yaml", whole=False), to=Stage.FAMILY).family.ops) == 5


def test_a_pass_that_runs_out_of_frames_is_a_diagnostic() -> None:
    def depth(n: int) -> int:
        return depth(n + 1) + 1

    with pytest.raises(SpecError, match="nested too deeply"):
        within_depth(depth)(0)


def test_a_pass_that_runs_out_of_frames_says_so_at_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    def depth(*args: object) -> object:
        return depth(*args)

    spec = loads(CHAINS["points"].text(3), "long.yaml", whole=False)
    family = compile_spec(spec, to=Stage.FAMILY).family
    key = spec.key_span("kernel").line
    for module, name, run in (
        ("opc.pipeline", "_elaborated", lambda: forward_op(spec, Diagnostics())),
        ("opc.pipeline", "_derived", lambda: derived_family(spec, family.forward, Diagnostics())),
        ("opc.lower.fuse", "cpu_programs", lambda: compile_spec(spec, to=Stage.PROGRAMS)),
        ("opc.emit.shapes.python", "emit", lambda: package_of(family, ())),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{name}", depth)
            with pytest.raises(SpecError, match=rf"long\.yaml:({key}|{key + 1}):.*nested too deeply"):
                run()
