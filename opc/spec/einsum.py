"""The spec that `opc new --einsum` writes: what an equation of Einstein's summation convention says, as a body.

The equation is as in NumPy's `einsum`, torch's and ONNX's: `bij,bjk->bik`, with `...` for any number of axes that broadcast, and
without `->` the letters that stand once, in alphabetical order, behind `...`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_letters, ascii_lowercase

from opc.diagnostics import Diagnostic, SpecError
from opc.names import op_name
from opc.records import dataclass
from opc.spec.schema import EDITOR_LINE
from opc.spec.text import op_name_problem

_TEMPLATE = """\
{editor_line}
op: {name}
domain: {domain}
version: 1
doc: 'The sums of products of the equation {equation}.'
types: {{{T}: floating}}
{broadcast}inputs:
{inputs}outputs:
  {target}: {T}[{shape}]
kernel: |
{body}reference:
  onnx: Einsum({operands}, equation='{equation}')
  torch: torch.einsum('{equation}', {operands})
"""
_OPERANDS = "xwuvpqrstz"
_TYPES = "TUVWX"


@dataclass(frozen=True, slots=True)
class Equation:
    """What an equation says: the letters of each operand's axes and of the result's, with `...` as one of them."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]


def parse_equation(text: str) -> Equation:
    """Return what an equation says.

    Raises:
        SpecError: when it is none.
    """
    left, arrow, right = text.partition("->")
    operands = tuple(_axes(part, text) for part in left.split(","))
    if arrow:
        result = _axes(right, text)
    else:
        counts = Counter(a for axes in operands for a in axes)
        result = (*(["..."] if "..." in counts else []), *sorted(a for a, n in counts.items() if n == 1 and a != "..."))
    known = {a for axes in operands for a in axes}
    twice = next((a for a, n in Counter(result).items() if n > 1), None)
    strange = next((a for a in result if a not in known), None)
    if twice is not None:
        raise _error(text, f"'{twice}' stands twice in the result")
    if strange is not None:
        raise _error(text, f"no operand has '{strange}'")
    if "..." in known and "..." not in result:
        raise _error(text, "the result lacks '...'")
    return Equation(operands, result)


def _axes(part: str, text: str) -> tuple[str, ...]:
    """Return the axes of one operand, or of the result."""
    axes: list[str] = []
    rest = part.replace(" ", "")
    while rest:
        axis = "..." if rest.startswith("...") else rest[0]
        if axis not in ("...", *ascii_letters):
            raise _error(text, f"'{axis}' names no axis")
        axes.append(axis)
        rest = rest[len(axis) :]
    if axes.count("...") > 1:
        raise _error(text, "'...' stands twice in an operand")
    return tuple(axes)


def _error(text: str, problem: str) -> SpecError:
    return SpecError([Diagnostic(f"'{text}' is no equation: {problem}", hint="write one as in NumPy: 'ij,jk->ik'")])


def einsum_spec(name: str, text: str, domain: str = "opc.nn") -> str:
    """Return the text of a spec that computes an equation, for an op called `name`.

    Raises:
        SpecError: when nothing can be called that, or the equation is none.
    """
    problem = op_name_problem(op_name(name))
    if problem is not None:
        raise SpecError([Diagnostic(f"'{name}' can't name an op: {problem}")])
    equation = parse_equation(text)
    letters = dict(_letters(equation, text))
    used = {*letters.values(), *(a.upper() for a in letters.values())}
    kind = next((t for t in _TYPES if t not in used), "Value")
    names = [n for n in _OPERANDS if n not in used][: len(equation.operands)]
    names += [f"x{i}" for i in range(len(names), len(equation.operands))]
    target = "y" if "y" not in used else "result"

    def indices(axes: Sequence[str]) -> str:
        return ", ".join(letters.get(a, a) for a in axes)

    def dims(axes: Sequence[str]) -> str:
        return ", ".join(letters[a].upper() if a in letters else a for a in axes)

    def statement(target: str, kept: Sequence[str], factors: Sequence[tuple[str, Sequence[str]]]) -> str:
        product = " * ".join(f"{n}[{indices(axes)}]" for n, axes in factors)
        summed = dict.fromkeys(a for _, axes in factors for a in axes if a not in kept)
        return f"  {target}[{indices(kept)}] = {f'sum[{indices([*summed])}]({product})' if summed else product}\n"

    # Two factors at a time, from the left: what no later one has is summed at once.
    body, factors = "", list(zip(names, equation.operands))
    while len(factors) > 2:
        (first, axes), (second, others), *rest = factors
        later = {a for _, more in rest for a in more} | {*equation.result}
        kept = tuple(dict.fromkeys(a for a in (*axes, *others) if a in later))
        body += statement(f"{first}{second}", kept, [(first, axes), (second, others)])
        factors = [(f"{first}{second}", kept), *rest]
    body += statement(target, equation.result, factors)
    return _TEMPLATE.format(
        editor_line=EDITOR_LINE,
        name=name,
        domain=domain,
        equation=text,
        T=kind,
        broadcast="broadcast: true\n" if sum("..." in axes for axes in equation.operands) > 1 else "",
        inputs="".join(f"  {n}: {kind}[{dims(axes)}]\n" for n, axes in zip(names, equation.operands)),
        target=target,
        shape=dims(equation.result),
        body=body,
        operands=", ".join(names),
    )


def _letters(equation: Equation, text: str) -> Iterator[tuple[str, str]]:
    """Yield each letter with the index that stands for it, a small letter, whose capital is the size."""
    letters = dict.fromkeys(a for axes in equation.operands for a in axes if a != "...")
    free = [a for a in ascii_lowercase if a not in letters]
    for a in letters:
        if a.islower():
            yield a, a
        elif not free:
            raise _error(text, "it has more than 26 letters")
        else:
            yield a, free.pop(free.index(a.lower()) if a.lower() in free else 0)
