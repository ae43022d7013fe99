"""The JSON Schema accepts every spec there is, and refuses the slips that a schema can see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from opc.diagnostics import Diagnostics, Source
from opc.spec.loader import _Table, loads
from opc.spec.schema import schema
from opc.spec.yaml_tree import parse_yaml
from tests.diagnostics import body_cases, signature_cases
from tests.diagnostics.harness import case, unmark
from tests.docs.pages import PAGES, page_id

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPECS = [(p.stem, p.read_text()) for p in sorted((ROOT / "specs").glob("*.yaml"))]
IN_DOCS = [
    (f"{page_id(p)}-{n}", text)
    for p in PAGES
    for n, text in enumerate(BLOCK.findall(p.read_text()))
    if re.search(r"^op: ", text, re.MULTILINE)
]
VALIDATOR = Draft202012Validator(schema())


def data(text: str) -> Any:
    """Return a spec's text as the data the checker looks at."""
    found = Diagnostics()
    root = parse_yaml(Source("spec.yaml", text), found)
    assert root is not None
    return _Table(found).convert(root, ())


def problems(text: str) -> list[str]:
    return [e.message for e in VALIDATOR.iter_errors(data(text))]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(("name", "text"), [*SPECS, *IN_DOCS], ids=[n for n, _ in (*SPECS, *IN_DOCS)])
def test_specs_are_accepted(name: str, text: str) -> None:
    loads(text, name)
    assert problems(text) == []


GOOD = [
    "ranks: {S: [1, 2, 3], K: S}",
    "attributes: {a: {type: 'int[*S]', default: 1}, b: {type: 'float[ *S ]', default: [0.5, 1]}, c: 'bool[*S]'}",
    "inputs: {x: 'T[N, *S]'}\noutputs: {y: 'T[N, *(S + 2*p)]'}",
    "inputs: {x: 'acc(T)[N, 3, *A]', u: 'T []', 'w?': ' T[ N , ... ] '}",
    "inputs: {x: 'T[N]', u: 'T[M,]'}",
    "outputs: {y: 'T[2*N + k[0], (N - 1) // 2, N if f else 1, minimum(N, 3)]'}",
    "outputs: {y: 'T[N if m == 2 else 1]'}",
    "attributes: {a: {type: int, default: 1}, b: {type: float, default: 1}, c: {type: 'int[]', default: []}, d: 'bool[64]'}",
    "attributes: {a: {type: float, default: .inf}, m: {type: str, values: [a], default: a}, f: {type: bool, default: false}}",
    "types: {T: float32, U: [int8, floating]}",
]


@pytest.mark.parametrize("fragment", GOOD)
def test_what_the_checker_takes_is_accepted(fragment: str) -> None:
    text = case(fragment).text
    loads(text, "spec.yaml")
    assert problems(text) == []


SLIPS = [
    "ranks: {S: 3.5}",
    "ranks: {S: [0]}",
    "ranks: {S: [true]}",
    "attributes: {a: {type: 'int[*S]', default: a}}",
    "attributes: {a: 'int[S]'}",
    "types: {T: floatin}",
    "types: {T: [float32, flaot16]}",
    "types: {T: complex64}",
    "types: {T: Float32}",
    "types: {T-1: floating}",
    "inputs: {x: T}",
    "inputs: {x: 'T(N)'}",
    "inputs: {x: 'T[N'}",
    "inputs: {x: 'T[N + 1]'}",
    "inputs: {x: 'T[-1]'}",
    "inputs: {x: 'T[N C]'}",
    "inputs: {x: 'T[....]'}",
    "inputs: {x: 'T[N]]'}",
    "inputs: {x: 'acc[T][N]'}",
    "inputs: {x: 'exp(T)[N]'}",
    "inputs: {x: {type: 'T', doc: d}}",
    "inputs: {x: {tpye: 'T[N]'}}",
    "inputs: {'x!': 'T[N]'}",
    "outputs: {y: T}",
    "outputs: {y: 'T[N'}",
    "outputs: {y: 'T[n:3]'}",
    "outputs: {y: 'T[N = 3]'}",
    "outputs: {'y?': 'T[N]'}",
    "attributes: {a: flaot}",
    "attributes: {a: 'str[2]'}",
    "attributes: {a: 'int[0]'}",
    "attributes: {a: 'int[65]'}",
    "attributes: {a: axis}",
    "attributes: {a: {type: dtype}}",
    "attributes: {a: {type: axis}}",
    "attributes: {a: {type: float, dim: N}}",
    "attributes: {a: {type: float, binds: T}}",
    "attributes: {a: {type: float, values: [b]}}",
    "attributes: {a: {type: int, default: 1.5}}",
    "attributes: {a: {type: int, default: true}}",
    "attributes: {a: {type: int, default: [1]}}",
    "attributes: {a: {type: float, default: 'one'}}",
    "attributes: {a: {type: bool, default: 1}}",
    "attributes: {a: {type: str, default: 1}}",
    "attributes: {a: {type: 'int[2]', default: 1}}",
    "attributes: {a: {type: 'int[2]', default: [1, 1.5]}}",
    "attributes: {a: {type: dtype, binds: T, default: float}}",
    "attributes: {a: {type: float, defualt: 1.0}}",
    "atributes: {}",
    "version: '1'",
    "version: 0",
    "broadcast: 1",
    "gradient: 'off'",
    "out_of_range: wrap",
    "op: LeakyRelu",
    "op: leaky-relu",
    "domain: Opc.NN",
    "domain: opc.",
    "onnx_name: leaky_relu",
    "names: {rknn: 'a b'}",
    "native: {cpp: {code: x, include: ['../a.h']}}",
    "native: {cpp: {code: x, link: ['-lm']}}",
    "native: {cpp: {link: [m]}}",
]


@pytest.mark.parametrize("fragment", SLIPS)
def test_slips_are_refused(fragment: str) -> None:
    assert problems(case(fragment).text) != []


def test_what_the_schema_refuses_the_checker_refuses() -> None:
    from tests.diagnostics.test_positions import diagnose

    every = [case(fragment) for fragment in SLIPS] + [*signature_cases.CASES, *body_cases.CASES]
    for row in every:
        text = unmark(row.text)[0]
        if len(text) < 4000 and problems(text):
            assert any(d.severity.value == "error" for d in diagnose(text)), text
