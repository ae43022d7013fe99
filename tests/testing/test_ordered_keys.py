"""Orders of computed keys: the oracle holds kernels to the one there is wherever rounding leaves one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opc.ir.op import Op
from opc.pipeline import compile_text
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.transform.language import spec_text

BODY = """\
inputs: {{x: 'T[*A, N, *B]'}}
attributes:
  axis: {{type: axis, dim: N, default: -1}}
  descending: {{type: bool, default: false}}
outputs: {{p: 'int64[*A, N, *B]', y: 'T[*A, N, *B]'}}
kernel: |
  t[*A, k:N, *B] = {key}
  p[*A, i, *B] = argsort[k](t[*A, k, *B], {descending})[i]
  y[*A, i, *B] = t[*A, p[*A, i, *B], *B]
"""
KEYS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "given": ("x[*A, k, *B]", lambda x: x),
    "rounded": ("x[*A, k, *B] * 3 + 0.1", lambda x: x * 3 + 0.1),
    "a function": ("exp(x[*A, k, *B])", np.exp),
    "partly infinite": ("exp(x[*A, k, *B]) if x[*A, k, *B] < 4 else inf", lambda x: np.where(x < 4, np.exp(x), np.inf)),
    "not all numbers": ("log(x[*A, k, *B] - 1.9)", lambda x: np.log(np.where(x > 1.9, x - 1.9, np.nan))),
    "less a mean": ("x[*A, k, *B] - mean[n](x[*A, n, *B])", lambda x: x - x.mean(1, keepdims=True)),
    "made step by step": ("x[*A, k, *B] + pad(t[*A, k - 1, *B], 0) / 1024", lambda x: x),
}
"""Keys that are further apart than what rounding does to them, and what orders as they do."""


def op(key: str, descending: str = "descending") -> Op:
    return compile_text(spec_text("f", BODY.format(key=key, descending=descending)), "f.yaml").forward


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("form", ["literal", "attribute"])
@pytest.mark.parametrize("key", KEYS)
def test_keys_that_are_apart_have_one_order(key: str, form: str, descending: bool) -> None:
    text, computed = KEYS[key]
    x = np.random.default_rng(0).permutation(20).reshape(2, 5, 2).astype(np.float32) / 4
    attributes = {"axis": 1, "descending": descending}
    found = evaluate(op(text, str(descending) if form == "literal" else "descending"), {"x": x}, attributes)
    keys = np.nan_to_num(computed(x.astype(np.float64)), nan=np.inf, posinf=1e30)
    want = np.argsort(-keys if descending else keys, axis=1, kind="stable")
    assert compare("p", want, found["p"]).ok
    for place in np.ndindex(want.shape):
        other = want.copy()
        other[place] = (other[place] + 1) % 5
        assert not compare("p", other, found["p"]).ok, "a wrong order passes"


def test_keys_that_rounding_may_make_equal_or_turn_have_either_order() -> None:
    x = np.array([1.0, 1.0 + 2.0**-23, 5.0], np.float32)
    found = evaluate(op("x[*A, k, *B] * 3 + 0.1"), {"x": x}, {"axis": 0, "descending": False})["p"]
    for order in ([0, 1, 2], [1, 0, 2]):
        assert compare("p", np.array(order), found).ok
    assert not compare("p", np.array([0, 2, 1]), found).ok


def test_what_is_not_equal_to_itself_is_not_a_number() -> None:
    body = "inputs: {x: 'T[N]'}\noutputs: {y: 'bool[N]', z: 'bool[N]'}\nkernel: |\n  t[i] = log(x[i]) * 3\n"
    body += "  y[i] = t[i] != t[i]\n  z[i] = t[i] <= t[i]\n"
    found = evaluate(compile_text(spec_text("f", body), "f.yaml").forward, {"x": np.array([-1.0, 2.0, 0.0], np.float32)}, {})
    for name, want in (("y", [True, False, False]), ("z", [False, True, True])):
        assert compare(name, np.array(want), found[name]).ok
        assert (found[name].bounds.low == found[name].bounds.high).all(), "what is compared with itself is left open"
