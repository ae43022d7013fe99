"""The generated files of the NumPy backend: clean, safe with any names, and honest about what is missing."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opc.api import LoadedOp
from opc.backends.base import OpError, Unsupported
from opc.backends.kernel.backend import KernelBackend
from opc.backends.numpy import backend as numpy_backend
from opc.backends.numpy.backend import NumpyBackend
from opc.build import builder
from opc.build.toolchain import runtime_include
from opc.diagnostics import SpecError
from opc.pipeline import compile_text, load_family
from tests import ruff
from tests.backends.numpy.conftest import KITCHEN, PLUS, SPECS, Loader

ROOT = Path(__file__).parents[3]
AWKWARD = r'''
op: awkward
domain: opc.test
version: 1
doc: |
  Says """quotes""", a \ backslash and */ a comment's end.
types: {T: [float32]}
inputs:
  plan: T[...]
  data?: {type: 'T[...]', doc: 'Ends in a quote"'}
attributes:
  types: {type: float, default: 1.0, doc: "\"\"\""}
  key: {type: str, values: [made, out], default: made}
outputs:
  memory: T[...]
  np: T[...]
kernel: |
  memory[...] = plan[...] * types + (data[...] if present(data) else 0)
  np[...] = plan[...] if key == 'out' else -plan[...]
gradient: none
examples:
  - {plan: [1.0], memory: [1.0], np: [-1.0]}
'''


def test_generated_python_is_formatted_and_free_of_lint(tmp_path: Path) -> None:
    families = [load_family(path) for path in sorted(SPECS.glob("*.yaml"))]
    families += [compile_text(text) for text in (KITCHEN, PLUS, AWKWARD)]
    for family in families:
        for path, text in NumpyBackend().emit(family).items():
            place = tmp_path / family.name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    rules = "E,F,I,UP,B,SIM,C4,N"
    ruff.accepts("format", "--diff", tmp_path)
    ruff.accepts("check", f"--select={rules}", "--target-version=py311", "--ignore=E501,B905", tmp_path)


def test_a_binding_that_was_not_written_whole_leaves_no_other_file(tmp_path: Path) -> None:
    script, made = tmp_path / "bindings.py", tmp_path / "made"
    script.write_text(NumpyBackend().emit(compile_text(PLUS))["numpy/bindings.py"])
    made.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    cut = subprocess.run((sys.executable, script, made / "plus.c"), preexec_fn=limit, capture_output=True, text=True, check=False)
    assert cut.returncode != 0
    assert [path.name for path in made.iterdir()] == ["plus.c"]
    subprocess.run((sys.executable, script, made / "plus.c"), check=True)
    assert (made / "plus.c").stat().st_size > 1000


@pytest.mark.parametrize("text", [KITCHEN, AWKWARD, None], ids=["kitchen", "awkward", "layer_norm"])
def test_binding_compiles_without_warnings(text: str | None, tmp_path: Path) -> None:
    family = load_family(SPECS / "layer_norm.yaml") if text is None else compile_text(text)
    for path, content in {**KernelBackend().emit(family), **NumpyBackend().emit(family)}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    # What the extension module does with the functions, which are static.
    uses = "".join(f"  total += (long)&call_{op.name} + (long)&infer_{op.name};\n" for op in family.ops)
    uses += "  total += (long)&opc_message + (long)&opc_get_threads + (long)&opc_set_threads;\n"
    source = f'#define _GNU_SOURCE\n#include "numpy/binding.h"\nlong use(void) {{\n  long total = 0;\n{uses}  return total;\n}}\n'
    (tmp_path / "use.c").write_text(source)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    includes = [f"-I{runtime_include()}", f"-I{tmp_path}"]
    done = subprocess.run(["cc", *flags, *includes, str(tmp_path / "use.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_of_a_spec_never_clash_with_those_of_the_function(loader: Loader) -> None:
    awkward = loader(AWKWARD)
    x = np.float32([1.0, -2.0])
    for _ in range(2):
        memory, np_ = awkward(x, x, types=2.0, key="out")
        np.testing.assert_array_equal(memory, 3 * x)
        np.testing.assert_array_equal(np_, x)
    assert awkward.__doc__ is not None
    assert '"""quotes"""' in awkward.__doc__
    assert "a \\ backslash" in awkward.__doc__


def test_operand_named_like_a_parameter_has_one_more_underscore() -> None:
    family = compile_text(PLUS.replace("b: T", "only: T").replace("a + b", "a + only"))
    assert NumpyBackend().requires(family) == ()
    assert "only_: Operand" in NumpyBackend().emit(family)["numpy/__init__.py"]


def test_same_family_gives_same_bytes() -> None:
    first, second = (NumpyBackend().emit(compile_text(KITCHEN)) for _ in range(2))
    assert first == second


def test_missing_python_headers_are_told_and_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numpy_backend, "_python_include", lambda: None)
    probe = NumpyBackend().probe()
    assert not probe.available
    assert probe.install is not None
    assert "python3-dev" in probe.install
    family = compile_text(PLUS)
    with pytest.raises(SpecError, match=r"needs Python's headers"):
        NumpyBackend().build(family)
    (named,) = builder.build_families([family], tmp_path, ["numpy"])
    assert "python3-dev" in named.diagnostics[0].render()
    from opc.backends import registry

    monkeypatch.setattr(registry, "select", lambda wanted=None: (NumpyBackend(),))
    (every,) = builder.build_families([family], tmp_path)
    assert every.ok
    assert set(every.skipped) == {"numpy"}


def test_package_that_is_not_built_says_so(tmp_path: Path) -> None:
    from opc.backends import package as packages
    from opc.build.generate import generate

    generate(compile_text(PLUS), tmp_path, [NumpyBackend()])
    with pytest.raises(ImportError, match="plus is not built for NumPy: run `opc build` on its spec"):
        packages.load(tmp_path / "plus", "numpy")
    with pytest.raises(ImportError, match="is not a generated package"):
        packages.load(tmp_path / "minus", "numpy")


@pytest.mark.parametrize("name", ["leaky_relu", "dual_residual"])
def test_session(loader: Loader, name: str) -> None:
    loaded: LoadedOp = loader(name)
    family = load_family(SPECS / f"{name}.yaml")
    session = NumpyBackend().session(family, Path(loaded.numpy.__file__ or "").parents[1])
    for check in NumpyBackend().checks(session):
        check.run()
    x = np.float32([1.0, -2.0])
    inputs = {o.name: x for o in family.forward.inputs}
    outputs = session.call(name, inputs, {"alpha": 0.5})
    assert list(outputs) == [o.name for o in family.forward.outputs]
    with pytest.raises(OpError, match="complex64"):
        session.call(name, {key: x.astype(np.complex64) for key in inputs}, {})
    with pytest.raises(Unsupported, match="NumPy has no autograd"):
        session.gradient(inputs, {}, outputs)
    with pytest.raises(Unsupported, match="NumPy has no autograd"):
        session.second_gradient(inputs, {}, outputs, inputs)
