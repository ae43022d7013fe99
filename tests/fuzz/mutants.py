"""Specs of the project with mistakes that the front end accepts: ops that nobody would write, each held to its proof."""

from __future__ import annotations

import random
import re

from opc.diagnostics import SpecError
from opc.pipeline import compile_text
from tests.faults.mutations import KINDS

TOLD = re.compile(r"^(examples|reference|gradient):(?! none).*(\n[ -].*)*\n?", re.MULTILINE)
"""What an author says of the op beside its body, which is right no more."""

BODY = re.compile(r"^kernel: +\|$", re.MULTILINE)
LEFT_OUT = re.compile(r"native|type: size|op: mean_variance_norm")
"""Code that is not of the language, calls whose sizes only data tells, and an op whose gradient over a single element, where the
chain rule multiplies 0 by the infinite slope of a square root, is no number."""

MADE = ("swaps", "tokens", "words")
"""The kinds of mistakes that leave a spec readable at times."""


def mutant(seed: int | str, number: int) -> str:
    """Return the text of the mutant with this number: the first that is accepted, of those that it draws."""
    rng = random.Random(f"{seed}/{number}")
    while True:
        text = KINDS[rng.choice(MADE)](rng).decode(errors="replace")
        if LEFT_OUT.search(text) or not BODY.search(text):
            continue
        text = re.sub(r"^op: .*", f"op: mutant_{number}", TOLD.sub("", text), flags=re.MULTILINE)
        if _is_accepted(text):
            return text


def _is_accepted(text: str) -> bool:
    """Whether the compiler does not refuse it; an accident there is one for the proof to tell of."""
    try:
        compile_text(text, "drawn")
    except SpecError:
        return False
    except Exception:
        return True
    return True
