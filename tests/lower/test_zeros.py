"""A sum and 0 is never -0: where a case of an attribute leaves `sum(...) + 0`, also of one term, and of terms that are all -0."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from opc.ir.op import Family, Group, Op
from opc.lower.lower import lower
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together

SUMS = {
    "all": ("x: 'T[I, K]'", "T[]", "sum[i, k](x[i, k])"),
    "all_of_a_group": ("x: 'T[*S]'", "T[]", "sum[*S](x[*S])"),
    "all_turned": ("x: 'T[I, K]'", "T[]", "sum[i:I, k](x[I - 1 - i, k])"),
    "all_of_a_flat_axis": ("x: 'T[I, K]'", "T[]", "sum[j:I*K](x[j // K, j % K])"),
    "all_by_place": ("x: 'T[I, K]'", "T[]", "sum[i, k](x[i, k] * cast(T, i + 1))"),
    "all_under_a_condition": ("x: 'T[I, K]', w: 'T[K]'", "T[]", "sum[i, k](x[i, k] if w[k] > 0 else 0)"),
    "all_or_negative_zero": ("x: 'T[I, K]', w: 'T[K]'", "T[]", "sum[i, k](x[i, k] if w[k] < 0 else -0.0)"),
    "all_before_a_place": ("x: 'T[I, K]'", "T[]", "sum[i, k](x[i, k] if i <= k + I else 0)"),
    "all_products": ("x: 'T[I]', w: 'T[K]'", "T[]", "sum[i, k](x[i] * w[k])"),
    "diagonal": ("x: 'T[I, I]'", "T[]", "sum[i](x[i, i])"),
    "broadcast": ("x: 'T[...]'", "T[...]", "sum[broadcast(x)](x[...])"),
    "columns": ("x: 'T[..., K]'", "T[K]", "sum[...](exp(x[..., k] * 0) * x[..., k])"),
    "rows": ("x: 'T[I, K]'", "T[I]", "sum[k](x[i, k])"),
    "pieces": ("x: 'T[I, K, J]', w: 'T[K]'", "T[I, J]", "sum[k](x[i, k, j] * w[k])"),
    "matrices": ("x: 'T[I, K]', w: 'T[K, J]'", "T[I, J]", "sum[k](x[i, k] * w[k, j])"),
    "matrices_of_batches": ("x: 'T[..., I, K]', w: 'T[..., K, J]'", "T[..., I, J]", "sum[k](x[..., i, k] * w[..., k, j])"),
    "triangle": ("x: 'T[I, I]', w: 'T[I, J]'", "T[I, J]", "sum[k:i + 1](x[i, k] * w[k, j])"),
    "one_term": ("x: 'T[I]'", "T[I]", "sum[k:1](x[i + k])"),
    "prefixes": ("x: 'T[H, I]'", "T[H, I]", "sum[k:i + 1](x[h, k])"),
    "window": ("x: 'T[I]'", "T[I]", "sum[k:3](pad(x[i + k - 1], -0.0))"),
    "convolution": ("x: 'T[C, I]', w: 'T[O, C, 3]'", "T[O, I]", "sum[c, k:3](pad(x[c, i + k - 1], 0) * w[o, c, k])"),
    "scattered": ("x: 'T[I]', ids: 'int64[I]', w: 'T[K]'", "T[K]", "sum[i](x[i] if ids[i] == k else 0)"),
    "scattered_rows": ("x: 'T[I, H]', ids: 'int64[I]', w: 'T[K]'", "T[K, H]", "sum[i](x[i, h] if ids[i] == k else 0)"),
    "sent": ("x: 'T[I]', w: 'T[K]'", "T[K]", "sum[i](x[i] if i // 2 == k else 0)"),
}


def family(name: str, added: str = " + (0 if bare else {z})") -> Family:
    inputs, output, value = SUMS[name]
    dims = output[2:-1].lower()
    at = f"[{dims}]" if dims else "[()]"
    return compile_text(
        f"op: {name}\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {{T: [float32]}}\ngradient: none\n"
        + ("broadcast: true\n" if "..." in output else "")
        + "attributes: {bare: {type: bool, default: true}}\n"
        + f"inputs: {{{inputs}, z: '{output}'}}\noutputs: {{y: '{output}'}}\n"
        + f"kernel: |\n  y{at if dims else ''} = {value}{added.format(z=f'z{at}')}\n",
        name,
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_together([family(name) for name in SUMS], tmp_path_factory.mktemp("zeros"), "-O0")


def zeros(op: Op, size: int, other: int, group: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return a call whose terms are -0: `x` and `z` are, and what they are multiplied with is 1."""
    inputs = {}
    for o in op.inputs:
        shape: list[int] = []
        for d in o.dims:
            shape += group if isinstance(d, Group) else [int(str(d)) if str(d).isdigit() else other if str(d) in "CK" else size]
        value = -0.0 if o.name in "xz" else 1
        inputs[o.name] = np.arange(size) % other if o.name == "ids" else np.full(shape, value, np.float32)
    return inputs


@pytest.mark.rotating
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_negative_zeros_and_zero(name: str, library: Path) -> None:
    one = family(name)
    kernel = KernelLibrary(one, library)
    for size, other, group in product((1, 2, 17), (1, 17), ((), (1,), (17,))):
        inputs = zeros(one.forward, size, other, group)
        got = kernel.call(one.forward, inputs, {"bare": True})["y"]
        assert not np.signbit(got).any()
        assert not got.any()


@pytest.mark.parametrize("name", SUMS)
def test_the_zero_takes_no_stage_of_its_own(name: str) -> None:
    case, _ = lower(family(name).forward)
    (other,) = lower(family(name, "").forward)
    assert [type(stage) for stage in case.program.stages] == [type(stage) for stage in other.program.stages]
