"""`opc package`: a wheel of ops is installed where neither opc nor a compiler is, and answers each framework in kind."""

from __future__ import annotations

import ast
import base64
import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution
from pathlib import Path

import auditwheel
import pytest
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from opc.build.wheels import archive, tags
from tests.packaging.conftest import Opc
from tests.packaging.environments import install, lend, make
from tests.packaging.scaled import LIGHT, SPEC, proof, proof_of

pytestmark = pytest.mark.rotating("file", seconds=16)

# Of integers there are no gradients to compile.
BLEND = """
op: blend
domain: mine.ops
version: 1
doc: The sum of x and some y, and the difference.
types: {T: [int64]}
inputs: {x: 'T[...]', y: 'T[...]'}
attributes: {weight: {type: int, default: 1}}
outputs: {z: 'T[...]', d: 'T[...]'}
kernel: |
  z = x + weight * y
  d = x - weight * y
"""
MODEL = """<ir_version: 9, opset_import: ["" : 17, "mine.ops" : 1]>
g (float[N] x, int64[N] i) => (float[N] y, int64[N] z, int64[N] d) {
  y = mine.ops.Scaled <factor = 3.0> (x)
  z, d = mine.ops.Blend <weight = 2> (i, i)
}"""
PROJECT = """
[project]
name = "my-ops"
version = "1.2.0"
description = "Ops of mine."
readme = "README.md"
license = "MIT"
license-files = ["LICENSE"]
authors = [{name = "Somebody"}, {name = "A Person", email = "person@example.org"}]
dependencies = ["packaging"]
urls = {Source = "https://example.org/ops"}

[tool.opc.package]
backends = ["torch", "onnxruntime", "paddle", "jax"]
proof = "proof.json"
"""
FRAMEWORKS = ("torch", "onnxruntime", "paddle", "jax")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of two ops."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "specs").mkdir()
    (folder / "specs/scaled.yaml").write_text(LIGHT)
    (folder / "specs/blend.yaml").write_text(BLEND)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "README.md").write_text("# Ops of mine\n")
    (folder / "LICENSE").write_text("Do what you like.\n")
    (folder / "proof.json").write_text(proof_of(folder / "specs"))
    return folder


@pytest.fixture(scope="module")
def wheel(project: Path, opc: Opc) -> Path:
    code, out, err = opc(project, "package")
    assert code == 0, err
    (made,) = (project / "dist").glob("*.whl")
    assert out == f"wrote dist/{made.name}\n"
    assert "warning: the wheel runs on processors of" in err
    return made


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment where pip has installed the wheel, with what it requires, which is no framework."""
    folder = tmp_path_factory.mktemp("environment")
    site = make(folder)
    lend(site, "numpy", "cffi", "pycparser", "packaging")
    install(wheel, folder / "bin/python")
    return site


@pytest.fixture
def python(site: Path, tmp_path: Path) -> Callable[..., str]:
    """Run a program in the environment, without a compiler and without opc; it may borrow the frameworks of this one."""

    def call(program: str, *, frameworks: bool = False) -> str:
        path = {"PYTHONPATH": sysconfig.get_path("purelib")} if frameworks else {}
        env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "OMP_WAIT_POLICY": "passive", **path}
        command = [str(site.parents[2] / "bin/python"), "-W", "ignore::UserWarning", "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_numpy_alone(python: Callable[..., str]) -> None:
    program = (
        "import sys, numpy as np, my_ops\n"
        "print(my_ops.scaled(np.float32([1.0, 2.0]), factor=3.0), my_ops.blend([0], [1], 2), my_ops.__version__)\n"
        f"print([m for m in ('opc', *{FRAMEWORKS!r}) if m in sys.modules])\n"
        "from importlib import resources, metadata\n"
        "held = resources.files('my_ops')\n"
        "print(*sorted(p.name for p in (held / 'specs').iterdir()))\n"
        "print([(held / name).is_file() for name in ('proof.json', 'py.typed')])\n"
        "print(my_ops.scaled.__module__, my_ops.scaled.__doc__.splitlines()[0])\n"
        "try: import opc\n"
        "except ImportError: print('no opc')\n"
    )
    assert python(program).splitlines() == [
        "[3. 6.] (array([2]), array([-2])) 1.2.0",
        "[]",
        "blend.yaml scaled.yaml",
        "[True, True]",
        "my_ops A number times x.",
        "no opc",
    ]


def test_torch_and_onnx_runtime(python: Callable[..., str]) -> None:
    program = (
        "import sys, my_ops, numpy as np\n"
        "assert 'torch' not in sys.modules\n"
        "import torch\n"
        "print(torch.ops.mine_ops.scaled(torch.ones(2), 3.0), type(torch.__loader__) is type(torch.__spec__.loader))\n"
        # The first call of all is one that torch.compile meets, the attribute another in each.
        "compiled = torch.compile(lambda x, by: my_ops.scaled(x, factor=by), fullgraph=True, backend='aot_eager')\n"
        "print(*(compiled(torch.ones(1), 0.5 * n).item() for n in range(4)))\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "my_ops.scaled(x, factor=4.0).sum().backward()\n"
        "print(x.grad, *my_ops.blend(torch.tensor([1]), y=torch.tensor([2])))\n"
        "try: my_ops.blend(x, np.ones(2))\n"
        "except TypeError as error: print(error)\n"
        "import onnxruntime\n"
        "from onnx.parser import parse_model\n"
        f"text = {MODEL!r}\n"
        "options = onnxruntime.SessionOptions()\n"
        "options.register_custom_ops_library(my_ops.onnxruntime_library())\n"
        "session = onnxruntime.InferenceSession(parse_model(text).SerializeToString(), options)\n"
        "print(*session.run(None, {'x': np.ones(1, np.float32), 'i': np.array([5])}))\n"
    )
    assert python(program, frameworks=True).splitlines() == [
        "tensor([3., 3.]) True",
        "0.0 0.5 1.0 1.5",
        "tensor([4., 4.]) tensor([3]) tensor([-1])",
        "blend: y is a numpy.ndarray, but x is a torch.Tensor: all inputs must be of one framework",
        "[3.] [15] [-5]",
    ]


def test_paddle_which_is_there_first(python: Callable[..., str]) -> None:
    program = (
        "import os, sys\n"
        "sys.modules['tvm_ffi'] = None\n"  # Paddle imports it where it is, and it imports torch.
        "import paddle, my_ops\n"
        "x = paddle.ones([2])\n"
        "x.stop_gradient = False\n"
        "(my_ops.scaled(x) * x).sum().backward()\n"
        "print(x.grad.tolist(), [os.path.basename(p) for p in my_ops.paddle_libraries()], 'torch' in sys.modules)\n"
    )
    expected = "[4.0, 4.0] ['libblend_paddle.so', 'libscaled_paddle.so'] False"
    assert python(program, frameworks=True).splitlines()[-1] == expected


def test_jax(python: Callable[..., str]) -> None:
    """Arrays of JAX's and what it traces are answered in kind; a process that was only imported into runs exported programs."""
    program = (
        "import sys, my_ops\n"
        "assert 'jax' not in sys.modules\n"
        "import jax\n"
        "from jax import export\n"
        "x = jax.numpy.ones(2)\n"
        "scaled = lambda x: my_ops.scaled(x, factor=4.0)\n"
        "made = scaled(x)\n"
        "print(isinstance(made, jax.Array), made, jax.jit(jax.grad(lambda x: (scaled(x) * x).sum()))(x), jax.vmap(scaled)(x))\n"
        "print(*jax.jit(my_ops.blend, static_argnames='weight')(x.astype(int), x.astype(int), weight=2))\n"
        "try: jax.jit(my_ops.scaled)(x, 2.0)\n"
        "except TypeError as error: print('static_argnames' in str(error))\n"
        "both = lambda x: jax.grad(lambda x: scaled(x).sum())(x) + my_ops.blend(x.astype(int), x.astype(int), weight=2)[1]\n"
        "program = export.export(jax.jit(both), disabled_checks=my_ops.jax_export_checks())(x).serialize()\n"
        "again = 'import sys, my_ops, jax; from jax import export;'"
        " 'print(export.deserialize(bytearray(sys.stdin.buffer.read())).call(jax.numpy.ones(2)))'\n"
        "import subprocess\n"
        "done = subprocess.run([sys.executable, '-c', again], input=bytes(program), capture_output=True)\n"
        "print(done.stdout.decode().strip())\n"
    )
    assert python(program, frameworks=True).splitlines() == [
        "True [4. 4.] [8. 8.] [4. 4.]",
        "[3 3] [-1 -1]",
        "True",
        "[3. 3.]",
    ]


def test_stubs_say_what_functions_do(site: Path, python: Callable[..., str], tmp_path: Path) -> None:
    tree = ast.parse((site / "my_ops/__init__.pyi").read_text())
    stubs = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    program = (
        "import inspect, json, my_ops\n"
        "names = [n for n in my_ops.__all__ if not n.endswith(('library', 'libraries', 'checks'))]\n"
        "of = {n: getattr(my_ops, n) for n in names}\n"
        "print(json.dumps({n: [[*map(repr, inspect.signature(f).parameters)], inspect.getdoc(f)] for n, f in of.items()}))\n"
        "print(json.dumps(my_ops.__all__))\n"
    )
    described, names = map(json.loads, python(program).splitlines())
    assert sorted(stubs) == names
    for name, (parameters, about) in described.items():
        arguments = stubs[name].args
        assert [repr(a.arg) for a in (*arguments.args, *arguments.kwonlyargs)] == parameters
        assert ast.get_docstring(stubs[name]) == inspect.cleandoc(about)
    (tmp_path / "use.py").write_text(
        "import my_ops\n"
        "reveal_type(my_ops.blend(b'', b''))\n"
        "my_ops.scaled(1, factor='2')\n"
        "reveal_type(my_ops.onnxruntime_library())\n"
        "reveal_type(my_ops.paddle_libraries())\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "use.py", "--python-executable"]
    done = subprocess.run(
        [*command, str(site.parents[2] / "bin/python")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]] == [
        'note: Revealed type is "tuple[bytes, bytes]"',
        'error: Argument "factor" to "scaled" has incompatible type "str"; expected "float"  [arg-type]',
        'note: Revealed type is "str"',
        'note: Revealed type is "tuple[str, ...]"',
    ]


def test_record_and_metadata(wheel: Path, site: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        record = next(n for n in names if n.endswith("/RECORD"))
        rows = [line.rsplit(",", 2) for line in held.read(record).decode().splitlines()]
        assert [name for name, _, _ in rows] == [*sorted(set(names) - {record}), record]
        assert rows[-1] == [record, "", ""]
        for name, digest, size in rows[:-1]:
            content = held.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert int(size) == len(content)
        text = held.read(record.replace("RECORD", "METADATA"))
        assert held.read(record.replace("RECORD", "licenses/LICENSE")) == b"Do what you like.\n"
    metadata = Metadata.from_email(text)
    assert (metadata.name, str(metadata.version), metadata.summary) == ("my-ops", "1.2.0", "Ops of mine.")
    assert (metadata.author, metadata.author_email) == ("Somebody", "A Person <person@example.org>")
    assert (metadata.license_expression, metadata.license_files) == ("MIT", ["LICENSE"])
    assert (metadata.description, metadata.description_content_type) == ("# Ops of mine\n", "text/markdown")
    assert metadata.project_urls == {"Source": "https://example.org/ops"}
    assert metadata.provides_extra is not None
    assert sorted(metadata.provides_extra) == sorted(FRAMEWORKS)
    requires = [str(r) for r in metadata.requires_dist or ()]
    assert requires[:3] == ["numpy>=1.26", "cffi>=1.17", "packaging"]
    assert 'torch>=2.10; extra == "torch"' in requires
    assert Distribution.at(next(site.glob("my_ops-*.dist-info"))).version == "1.2.0"


def test_the_tag_is_what_auditwheel_finds(wheel: Path) -> None:
    # Frameworks bring their own libraries.
    brought = frozenset({"libtorch_cpu.so", "libphi_core.so", "libphi.so", "libcommon.so"})
    from auditwheel.architecture import Architecture
    from auditwheel.libc import Libc
    from auditwheel.wheel_abi import analyze_wheel_abi

    machine = Architecture(os.uname().machine)
    found = analyze_wheel_abi(Libc.GLIBC, machine, wheel, brought, disable_isa_ext_check=False, allow_graft=True)
    _, _, _, said = parse_wheel_filename(wheel.name)
    assert {str(tag) for tag in said} == {f"cp311-abi3-{found.overall_policy.name}"}


def test_the_table_of_symbols_is_auditwheels() -> None:
    policies = json.loads((Path(str(auditwheel.__file__)).parent / "policy/manylinux-policy.json").read_text())
    held = {policy["name"]: policy["symbol_versions"] for policy in policies}
    assert [p[0] for p in tags.POLICIES] == sorted(p[0] for p in tags.POLICIES)
    for glibc, *newest in tags.POLICIES:
        of = held[f"manylinux_{glibc[0]}_{glibc[1]}"]
        for symbols in (of["x86_64"], of.get("aarch64", of["x86_64"])):
            for kind, version in zip(tags.KINDS[1:], newest, strict=True):
                has = [tuple(map(int, v.split("."))) for v in symbols[kind] if v.replace(".", "").isdigit()]
                # One machine's systems may have more than the other's: the table is true of both.
                assert version <= (*max(has), 0), (glibc, kind)


def test_two_folders_give_the_same_bytes(wheel: Path, project: Path, opc: Opc, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "specs"
    other.mkdir(parents=True)
    shutil.copy(project / "specs/scaled.yaml", other)
    made = []
    for folder, out in ((project, "generated"), (other.parent, "built")):
        named = ("--name", "one-op", "-b", "onnxruntime", "-b", "torch", "-b", "jax", "-b", "tvm_ffi")
        code, _, err = opc(folder, "package", "specs/scaled.yaml", *named, "-o", out)
        assert code == 0, err
        made += (folder / "dist").glob("one_op*.whl")
    first, second = made
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    # Without Paddle, whose headers ask for a newer one, it is the manylinux that every framework's wheels have.
    assert first.name == f"one_op-0.1.0-cp311-abi3-manylinux_2_17_{os.uname().machine}.whl"


def test_time_and_order_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = {"b.py": b"1\n", "a.so": b"2\n", "x.dist-info/METADATA": b"3\n"}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    archive.write_wheel(tmp_path / "x.whl", "x.dist-info", held)
    archive.write_wheel(tmp_path / "y.whl", "x.dist-info", dict(reversed(held.items())))
    assert (tmp_path / "x.whl").read_bytes() == (tmp_path / "y.whl").read_bytes()
    with zipfile.ZipFile(tmp_path / "x.whl") as made:
        assert made.namelist() == ["a.so", "b.py", "x.dist-info/METADATA", "x.dist-info/RECORD"]
        assert {i.date_time for i in made.infolist()} == {(2001, 9, 9, 1, 46, 40)}
        assert [oct(i.external_attr >> 16) for i in made.infolist()][:2] == ["0o100755", "0o100644"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("--name", "my-ops", "-b", "rknn"),
            1,
            "no wheel carries ops for the backend 'rknn'\n  hint: those that one carries are ",
        ),
        (("--name", "my-ops", "-b", "torhc"), 2, "there is no backend 'torhc'"),
        (("--name", "torch"), 1, "'torch' is a module of PyTorch, so no wheel of ops can be called 'torch'"),
        (("--name", "json"), 1, "'json' is a module of Python"),
        (("--name", "-x"), 1, "'-x' can't name a distribution"),
        (("--name", "my-ops", "--version", "one"), 1, "'one' is no version of a distribution"),
        ((), 2, "there is no [project] in a pyproject.toml here: name the wheel, as in --name my-ops"),
    ],
)
def test_mistakes_on_the_command_line(opc: Opc, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/scaled.yaml").write_text(SPEC)
    (tmp_path / "pyproject.toml").write_text("")
    status, _, err = opc(tmp_path, "package", *arguments)
    assert status == code, err
    assert said in err
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('name = "x-y"', "[project] has no version"),
        ('name = "x-y"\nversion = "1"\nscripts = {x = "x:y"}', "'scripts' in [project] is nothing that opc package can carry"),
        ('name = "x-y"\nversion = "1"\nlicense = {text = "MIT"}', "license in [project] must be an SPDX expression"),
        ('name = "x-y"\nversion = "1"\nlicense-files = ["../L"]', "license-files in [project] has '../L', which leads out"),
        ('name = "x-y"\nversion = "1"\nreadme = "gone.md"', "cannot read gone.md"),
        (
            'name = "x-y"\nversion = "1"\n[tool.opc.package]\nbackend = []',
            "[tool.opc.package] has the keys specs, backends and proof",
        ),
        ('name = "x-y"\nversion = "1"\n[tool.opc.package]\nspecs = ["empty"]', "there are no specs (*.yaml)"),
        ('name = "x-y"\nversion = "1"\n[tool.opc.package]\nproof = "p.json"', "can't be read as a proof"),
    ],
)
def test_mistakes_of_a_project(opc: Opc, tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/scaled.yaml").write_text(SPEC)
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{table}\n")
    code, _, err = opc(tmp_path, "package")
    assert code == 1
    assert said in err


def test_a_proof_is_of_these_specs(tmp_path: Path) -> None:
    from opc.build.wheels.proof import read
    from opc.diagnostics import SpecError

    place = tmp_path / "proof.json"
    for text, said in (
        (proof({"a": "1"}, "a"), "the proof of a failed"),
        (proof({"a": "2"}), "has the proof of another spec of a"),
        (proof({"b": "1"}), "has no proof of a"),
        ("[]", "can't be read as a proof: opc test --results did not write it"),
    ):
        place.write_text(text)
        with pytest.raises(SpecError, match=said):
            read(place, {"a": "1"})
    place.write_text(proof({"a": "1", "b": "1"}))
    assert read(place, {"a": "1"}) == place.read_text()


@pytest.mark.parametrize("name", ["onnxruntime_library", "jax_export_checks"])
def test_an_op_called_like_a_function_of_the_module_is_told_before_anything_is_built(opc: Opc, tmp_path: Path, name: str) -> None:
    text = (Path(__file__).parents[2] / "specs" / "relu.yaml").read_text()
    (tmp_path / "a.yaml").write_text(text.replace("op: relu", f"op: {name}"))
    (tmp_path / "b.yaml").write_text(text)
    code, _, err = opc(tmp_path, "package", "a.yaml", "b.yaml", "--name", "my-ops", "-b", "onnxruntime", "-b", "jax")
    assert code == 1
    assert err == f"error: the op '{name}' is called like a function that a wheel has\n  hint: rename the op\n"
    assert not (tmp_path / "generated").exists()
