"""The emitted text: schemas, derivatives, layout, and what it takes to build it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from opc.backends.batching import batching, needs_batch_axes
from opc.backends.derivatives import rules
from opc.backends.torch import generated_tests
from opc.backends.torch.backend import TorchBackend
from opc.backends.torch.library import SHIM_FUNCTIONS, library_source
from opc.backends.torch.operators import operators_source
from opc.backends.torch.schema import out_schema, schema
from opc.build.toolchain import runtime_include
from opc.ir.op import Family
from opc.pipeline import compile_text
from tests import ruff

from .conftest import PANTRY, SPECS, Loader

ALL = sorted(p.stem for p in SPECS.glob("*.yaml"))


def test_schemas(family: Loader) -> None:
    leaky = family("leaky_relu")
    assert schema(leaky.forward, batched=False) == "leaky_relu(Tensor x, float alpha=0.01) -> Tensor"
    assert out_schema(leaky.forward) == "leaky_relu.out(Tensor x, float alpha=0.01, *, Tensor(a!) out) -> ()"
    pantry = family("pantry").forward
    assert schema(pantry, batched=True) == (
        "pantry(Tensor x, Tensor? w=None, float scale=1.0, int[] shift=[0, 0], float[] weights=[1.0, 2.0], "
        "bool flip=False, str mode='plain', int batch_axes=0) -> (Tensor, Tensor)"
    )
    assert out_schema(pantry).endswith("*, Tensor(a!) y, Tensor(b!) total) -> ()")


def test_a_default_stands_only_where_all_later_ones_do() -> None:
    text = PANTRY.replace("flip: {type: bool, default: false}", "flip: {type: bool}")
    forward = compile_text(text, "pantry.yaml").forward
    assert "Tensor? w, float scale, int[] shift, float[] weights, bool flip, str mode='plain'" in schema(forward, batched=True)


def test_batch_axis_joins_the_group_only_where_values_allow(family: Loader) -> None:
    assert [needs_batch_axes(family(n)) for n in ("leaky_relu", "softmax", "add", "layer_norm", "clamp")] == [
        False, False, True, True, True,
    ]  # fmt: skip
    norm = family("layer_norm")
    assert norm.backward is not None
    assert batching(norm.forward).grouped == (True, False, False)
    assert not batching(norm.backward).joins_group  # d_w sums over the group
    add = batching(family("add").forward)
    assert add.joins_group
    assert add.equal_ranks
    assert batching(family("softmax").forward).axes == (0,)


def test_gradients_come_from_the_ops_that_were_derived(family: Loader) -> None:
    found = {rule.op.name: rule for rule in rules(family("softmax"))}
    assert [c.op.name for c in found["softmax"].vjp] == ["softmax_backward"]
    assert found["softmax"].saved == ("y",)
    assert found["softmax_backward"].jvp is not None
    assert found["softmax_backward"].jvp.op.name == "softmax_backward_jvp"
    # The tangent's own gradient needs the output that the jvp does without.
    pushed = found["softmax_jvp"]
    assert [c.op.name for c in pushed.vjp] == ["softmax_backward", "softmax_backward_jvp"]
    assert pushed.again is not None
    assert pushed.again.op.name == "softmax"
    # The second gradient is linear in its cotangents, and there is no derivative by what else it has.
    last = found["softmax_backward_backward"]
    assert [(c.op.name, c.results) for c in last.vjp] == [("softmax_backward_jvp", ("d_d_x",))]
    assert last.beyond == ("y", "d_y")


def test_a_cotangent_is_called_as_no_operand_is(family: Loader) -> None:
    (call,) = next(rule for rule in rules(family("gelu")) if rule.beyond).vjp
    assert [g.name for g in call.given] == ["x", "d_y", "grad_d_x", "d_d_d_y"]


def test_missing_cotangents_of_a_broadcast_keep_their_shape(family: Loader) -> None:
    text = operators_source(family("add"))
    assert "or_zeros(d_d_a, a), or_zeros(d_d_b, b)" in text
    assert "or_zeros" not in operators_source(family("layer_norm"))


def test_a_cotangent_is_handed_on_where_it_is_the_gradient(family: Loader) -> None:
    text = operators_source(family("addcmul"))
    assert "wanted = [needs[1] and (recorded or d_y.shape != x.shape), needs[2], needs[3]]" in text
    assert "return None, d_x if wanted[0] else d_y, d_a, d_b, None, None" in text
    # The shapes are the same in any call: nothing is left to look at but whether this is recorded.
    assert "wanted = [needs[1] and recorded, needs[3]]" in operators_source(family("scatter_add"))
    assert "grad_enabled" not in operators_source(family("clamp"))


def test_an_operand_may_be_called_like_a_local() -> None:
    spec = """
op: awkward
doc: A product.
domain: opc.torch_test
version: 1
types: {T: [float64]}
inputs: {ctx: 'T[...]', needs: 'T[...]'}
outputs: {output: 'T[...]'}
kernel: output = ctx * needs
"""
    text = operators_source(compile_text(spec, "awkward.yaml"))
    assert "_, ctx_, needs_ = inputs" in text
    assert "ctx_, needs_ = ctx.saved_tensors" in text
    compile(text, "awkward", "exec")


def test_a_name_that_torch_needs_has_one_more_underscore() -> None:
    spec = """
op: fine
doc: A copy.
domain: opc.torch_test
version: 1
types: {T: [float32]}
inputs: {out: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: y = out
"""
    family = compile_text(spec, "fine.yaml")
    assert TorchBackend().requires(family) == ()
    assert "def fine(out_: Tensor, *, out: Tensor | None = None)" in TorchBackend().emit(family)["torch/__init__.py"]


def with_many(attributes: int, outputs: int) -> Family:
    """Return an op of two inputs whose gradient has all of these attributes and a cotangent of each output."""
    names = [f"y{k}" for k in range(outputs)]
    text = f"""
op: many
doc: Sums.
domain: opc.torch_test
version: 1
types: {{T: [float32]}}
inputs: {{a: 'T[...]', b: 'T[...]'}}
attributes:
  of_all: {{type: float, default: 1.0}}
{"".join(f"  k{k}: {{type: float, default: {k}.0}}{chr(10)}" for k in range(attributes - 1))}
outputs: {{{", ".join(f"{name}: 'T[...]'" for name in names)}}}
kernel: |
  each = of_all * a * b{"".join(f" + k{k}" for k in range(attributes - 1))}
{"".join(f"  {name} = each + {k} * a{chr(10)}" for k, name in enumerate(names))}
"""
    return compile_text(text, "many.yaml")


@pytest.mark.parametrize(("attributes", "outputs"), [(40, 1), (61, 1), (62, 1), (2, 28), (2, 30)])
def test_ops_of_more_arguments_than_torch_takes_are_refused(attributes: int, outputs: int) -> None:
    """What the backend takes, torch's parser of schemas takes, and where it refuses a schema, the backend has refused the op."""
    family = with_many(attributes, outputs)
    schemas = [text for op in family.ops for text in (schema(op, batched=needs_batch_axes(family)), out_schema(op))]
    library = torch.library.Library(f"opc_many_{attributes}_{outputs}", "DEF")
    refused = []
    for text in schemas:
        try:
            library.define(text)
            library.impl(text.partition("(")[0], lambda *operands: operands[0], "CPU")
        except RuntimeError as error:
            refused.append(str(error))
    assert all("only supports 64" in message for message in refused)
    assert bool(TorchBackend().requires(family)) == bool(refused)
    assert bool(refused) == (attributes > 40 or outputs > 28)


@pytest.mark.rotating
@pytest.mark.parametrize("name", ALL)
def test_emitted_files_are_formatted_and_the_same_again(name: str, family: Loader, tmp_path: Path) -> None:
    spec = family(name)
    emitted = TorchBackend().emit(spec)
    assert emitted == TorchBackend().emit(family(name))
    for path, text in emitted.items():
        assert f"Generated by opc from {name}.yaml; edits are lost." in text.split("\n")[0]
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        if path.endswith(".py"):
            compile(text, path, "exec")
            (tmp_path / path.replace("/", "_")).write_text(text)
        else:
            assert max(map(len, text.split("\n"))) <= 120, path
    ruff.accepts("format", "--diff", tmp_path)


def test_the_backend_loads_without_torch() -> None:
    code = "import sys; import opc.backends.torch.backend as b; b.TorchBackend().probe(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_probe_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    found = TorchBackend().probe()
    assert not found.available
    assert found.install == 'pip install "opc-compiler[torch]"'
    monkeypatch.setattr(metadata, "version", lambda name: "2.9.1+cpu")
    assert "older than 2.10" in (TorchBackend().probe().reason or "")
    monkeypatch.setattr(metadata, "version", lambda name: "2.13.0+cpu")
    assert TorchBackend().probe().available


def test_the_stub_has_what_the_header_declares() -> None:
    expand = ["g++", "-E", "-P", "-x", "c++", f"-I{runtime_include()}", "-include", "opc/adapters/torch_shim.h", "/dev/null"]
    header = subprocess.run(expand, check=True, capture_output=True, text=True).stdout
    declared = set(re.findall(r"\b(?:int32_t|void) ((?:aoti_)?torch_\w+)\(", header))
    assert declared == set(SHIM_FUNCTIONS)


def test_torch_has_the_shim() -> None:
    import ctypes

    import torch

    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    assert [name for name in SHIM_FUNCTIONS if not hasattr(library, name)] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("torch.nn.functional.elu(x, 1.0)", True),
        ("x * torch.sigmoid(x)", True),
        ("x[..., 0] if x.ndim else x.clone()", True),
        ("torch.load(x)", False),
        ("torch.hub.load(x, x)", False),
        ("torch.ops.aten.relu(x)", False),
        ("__import__('os').system('true')", False),
        ("open(x)", False),
        ("x.__class__", False),
        ("(lambda: x)()", False),
        ("[x for _ in x]", False),
        ("x.tofile('f')", False),
    ],
)
def test_a_reference_is_only_generated_when_it_merely_computes(text: str, kept: bool, family: Loader) -> None:
    from dataclasses import replace

    spec = family("elu")
    found = generated_tests.files(replace(spec, reference=replace(spec.reference, torch=text)))["tests/test_torch.py"]
    assert ("def reference(" in found) is kept


def test_library_takes_every_kind_of_attribute(family: Loader) -> None:
    text = library_source(family("pantry"))
    assert 'arguments.list<int64_t>("shift", attributes.shift, 2);' in text
    assert "attributes.weights = arguments.list<double>(&attributes.weights_length);" in text
    assert "attributes.flip = arguments.boolean();" in text
    assert """arguments.choice("mode", mode_values, 2, "'plain', 'square'");""" in text


def test_every_op_of_a_family_is_registered(family: Loader) -> None:
    spec: Family = family("dual_residual")
    text = library_source(spec)
    for op in spec.ops:
        assert f"&functions<call_{op.name}>}}," in text
