"""Golden tests of the passes: a spec in, the printed IR out.

Each file of `golden/` holds a spec and, under `== PASS` lines, what each pass makes of it. After a change that is meant, run
`OPC_UPDATE_GOLDEN=1 pytest tests/transform/test_golden.py` and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.ir.op import Op
from opc.ir.printer import format_op
from opc.ir.verify import verify
from opc.spec.loader import loads
from opc.transform.autodiff import vjp
from opc.transform.inline import inline
from opc.transform.jvp import jvp
from opc.transform.normalize import hoist, sink
from opc.transform.share import share
from opc.transform.simplify import erase, simplify

GOLDEN = Path(__file__).parent / "golden"
HEAD = "domain: test\nversion: 1\ndoc: A test.\n"


def derived(op: Op | None) -> Op:
    assert op is not None
    return op


PASSES: dict[str, Callable[[Op], Op]] = {
    "elaborated": lambda op: op,
    "simplify": simplify,
    "erase": erase,
    "hoist": hoist,
    "hoist every": lambda op: hoist(op, every=True),
    "share": share,
    "sink": sink,
    "inline": inline,
    "vjp": lambda op: derived(vjp(op)),
    "vjp vjp": lambda op: derived(vjp(derived(vjp(op)))),
    "jvp": lambda op: derived(jvp(op)),
    "vjp jvp": lambda op: derived(jvp(derived(vjp(op)))),
}


def sections(text: str) -> tuple[str, list[str]]:
    spec, *rest = text.split("\n== ")
    return spec, [part.split("\n", 1)[0] for part in rest]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    text = path.read_text()
    spec, names = sections(text)
    assert names, "the file asks for no pass"
    op = elaborate(loads(f"op: {path.stem}\n{HEAD}{spec}\n", path.name))
    found = spec
    for name in names:
        result = PASSES[name](op)
        verify(result)
        found += f"\n== {name}\n{format_op(result)}"
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        path.write_text(found)
    assert found == text


def test_every_pass_has_a_golden_file() -> None:
    used = {name for path in GOLDEN.glob("*.txt") for name in sections(path.read_text())[1]}
    assert used == PASSES.keys()
