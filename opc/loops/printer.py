"""The loop IR as text: what `opc show --loops` prints and golden tests compare."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.printer import format_expr
from opc.loops.nodes import (
    Accumulate,
    Alias,
    Body,
    Buffer,
    CallWithBody,
    Comment,
    Continue,
    Do,
    GroupPoints,
    How,
    If,
    Kernel,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Refuse,
    Return,
    Search,
    Statement,
    Store,
    Var,
    While,
    Yield,
)
from opc.loops.values import type_text

_OPERATORS = {"sum": "+=", "prod": "*=", "any": "or=", "all": "and="}


def format_body(body: Body, margin: str = "") -> str:
    """Return statements, one a line, each ending in a line break."""
    return "".join(f"{margin}{line}\n" for s in body for line in _lines(s))


def format_kernel(name: str, kernel: Kernel) -> Iterator[str]:
    """Yield the lines of a function and of its other forms."""
    flags = f" with {', '.join(kernel.flags)}" if kernel.flags else ""
    yield f"function {name}({', '.join(kernel.operands)}){flags}:"
    for f in kernel.forms:
        yield f"  if {format_expr(f.cond)}: return {f.prefix}{name}{f.suffix}"
    yield from _inside(kernel.body)
    for f in kernel.forms:
        yield from format_kernel(f"{f.prefix}{name}{f.suffix}", f.kernel)


def format_inline(body: Body) -> str:
    """Return statements on one line."""
    return "; ".join(line.strip() for s in body for line in _lines(s))


def _lines(s: Statement) -> Iterator[str]:
    match s:
        case Comment():
            yield f"# {s.text}"
        case Let():
            yield f"let {s.name}: {type_text(s.kind)} = {format_expr(s.value)}"
        case Var():
            yield f"var {s.name}: {type_text(s.kind)}" + ("" if s.value is None else f" = {format_expr(s.value)}")
        case Buffer():
            yield f"buffer {s.name}: {type_text(s.kind)}[{s.size if isinstance(s.size, str) else format_expr(s.size)}]"
        case Alias():
            yield f"type {s.name} = type({s.variable})"
        case Store():
            yield f"{format_expr(s.target)} = {format_expr(s.value)}"
        case Accumulate():
            by = f" by {s.by}" if s.by else ""
            if s.kind in _OPERATORS:
                yield f"{format_expr(s.target)} {_OPERATORS[s.kind]} {format_expr(s.value)}{by}"
            else:
                yield f"{format_expr(s.target)} {s.kind}= {format_expr(s.value)}{by}"
        case Search():
            positions = ", ".join(f"{format_expr(p)} = {format_expr(n)}" for p, n in zip(s.positions, s.numbers, strict=True))
            yield f"{format_expr(s.best)} {s.kind}= {format_expr(s.value)}, and there {positions}"
        case Do():
            yield format_expr(s.call)
        case Refuse():
            yield f"refuse if {format_expr(s.cond)}: {format_expr(s.report)}"
        case Yield():
            yield f"result {format_expr(s.value)}"
        case Continue():
            yield "continue"
        case Return():
            yield "return"
        case If():
            yield f"if {format_expr(s.cond)}:"
            yield from _inside(s.then)
            if s.other:
                yield "else:"
                yield from _inside(s.other)
        case PassGroup():
            for inner in s.body:
                yield from _lines(inner)
        case _:
            yield from _with_body(s)


def _with_body(s: Loop | GroupPoints | While | CallWithBody | LocalFunction) -> Iterator[str]:
    match s:
        case Loop():
            how = "" if s.how is How.SERIAL else f"{s.how.value} "
            carried = f" carrying {s.carried}" if s.carried else ""
            step = "" if s.step is None else f" by {format_expr(s.step)}"
            down = " down" if s.down else ""
            ends = f"{format_expr(s.low)} .. {format_expr(s.high)}{step}{down}"
            yield f"{how.removesuffix('for ')}for {s.index} in {ends}{carried}:"
        case GroupPoints():
            yield f"for {s.name} in points of {', '.join(map(format_expr, s.over))}:"
        case While():
            yield f"while {format_expr(s.cond)}:"
        case CallWithBody():
            yield f"{format_expr(s.call)} with ({', '.join(name for _, name in s.params)}):"
        case LocalFunction():
            yield f"function {s.name}({', '.join(name for _, name in s.params)}):"
    yield from _inside(s.body)
    if isinstance(s, LocalFunction) and s.result is not None:
        yield f"  result {format_expr(s.result)}"


def _inside(body: Body) -> Iterator[str]:
    for s in body:
        yield from (f"  {line}" for line in _lines(s))
