"""Body text -> untyped tree, through Python's own parser. Nothing is ever executed.

Python's `ast` gives the places as lines and UTF-8 bytes within the body; they are turned into places in the file through the
positions a `SourceText` carries.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Collection
from keyword import iskeyword

from opc.diagnostics import Diagnostics, Span
from opc.lang.depth import MAX_DEPTH, too_deep
from opc.lang.tree import (
    ORDER,
    Among,
    Apply,
    AxisRange,
    Conditional,
    Dots,
    Item,
    Literal,
    Name,
    Operation,
    ReductionCall,
    Star,
    Statement,
    Subscript,
    Tree,
)
from opc.lang.wording import of_part, reworded
from opc.spec.text import STRING, SourceText

MAX_CHARACTERS = 100_000
_WHOLE = range(-(2**63), 2**64)
"""The numbers that int64 or uint64 holds."""
_TOO_LARGE = "int64 holds numbers to 2**63 - 1 and uint64 to 2**64 - 1; with a point, as in 1.0, a number is a floating one"

_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "+"),
    ast.Sub: ("sub", "-"),
    ast.Mult: ("mul", "*"),
    ast.Div: ("div", "/"),
    ast.FloorDiv: ("floordiv", "//"),
    ast.Mod: ("mod", "%"),
    ast.Pow: ("pow", "**"),
    ast.BitAnd: ("bit_and", "&"),
    ast.BitOr: ("bit_or", "|"),
    ast.BitXor: ("bit_xor", "^"),
    ast.LShift: ("shift_left", "<<"),
    ast.RShift: ("shift_right", ">>"),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("lt", "<"),
    ast.LtE: ("le", "<="),
    ast.Gt: ("gt", ">"),
    ast.GtE: ("ge", ">="),
    ast.Eq: ("eq", "=="),
    ast.NotEq: ("ne", "!="),
}
# Python's operators that the language lacks, with what to write instead.
_FOREIGN: dict[type[ast.AST], tuple[str, str]] = {
    ast.MatMult: ("@", "write the contraction out: sum[k](x[i, k] * w[k, j])"),
    ast.Is: ("is", "write `==`"),
    ast.IsNot: ("is not", "write `!=`"),
}
_STATEMENTS = "a body holds assignments only, such as y = x + 1 or y[...] = x[...] + 1"
_TARGET = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\[[^\n=]*\])?\s*=(?!=)")
# `x[]` is no Python; strings are matched first so that nothing inside them is touched.
# More digits than Python's own parser converts.
_HUGE_NUMBER = re.compile(r"[0-9][0-9_]{1000,}")
_EMPTY_SUBSCRIPT = re.compile(STRING + r"""|(?<=[\w)])\[[ \t]*\]""")


def parse_body(text: SourceText, found: Diagnostics) -> tuple[Statement, ...]:
    """Return the statements of a body. Mistakes are recorded in `found`; what such a statement assigns is kept where it shows."""
    prepared = _prepare(text, found)
    if prepared is None:
        return ()
    text = prepared
    module = _parse(text, found)
    if module is not None:
        return _statements(text, module, found)
    # One statement with a mistake must not hide those in the others: parse them one by one.
    statements: list[Statement] = []
    before = len(found.items)
    named: set[str] = set()
    for start, end in _chunks(text.value):
        part = text.cut(start, end)
        if (assigned := _TARGET.match(part.value)) is not None and iskeyword(assigned[1]):
            named.add(assigned[1])  # that it can't be called so is told with the statement, and once
        tree = _parse(part, found, report=True, named=named)
        if tree is not None:
            statements += _statements(part, tree, found)
        elif target := _TARGET.match(part.value):
            span = part.span(*target.span(1))
            statements.append(Statement(Name(target[1], span), None, span, None, span))
    if len(found.items) == before and not named:  # the pieces are fine and the whole is not: the parser says why
        _parse(text, found, report=True)
    return tuple(statements)


def parse_expression(text: SourceText, found: Diagnostics) -> Tree | None:
    """Return the one expression in `text`; None when it has mistakes, which are recorded in `found`."""
    prepared = _prepare(text, found)
    if prepared is None:
        return None
    if not prepared.value.strip():
        found.error("an expression is missing here", text.span(0, len(text.value)), "write one, or leave the key out")
        return None
    # Parentheses let the expression run over several lines; the converter takes their column away again.
    first = prepared.positions[0]
    last = prepared.positions[-1]
    wrapped = SourceText(f"({prepared.value}\n)", prepared.source, (first, *prepared.positions, last, last))
    module = _parse(wrapped, found, report=True, wrapped=True)
    if module is None:
        return None
    if len(module.body) != 1 or not isinstance(module.body[0], ast.Expr):
        found.error("expected one expression", text.span(0, len(text.value)), "several conditions are a list: [N > 0, M > 0]")
        return None
    return _Converter(wrapped, found).expression(module.body[0].value)


def _prepare(text: SourceText, found: Diagnostics) -> SourceText | None:
    value = text.value
    if len(value) > MAX_CHARACTERS:
        found.error(f"longer than {MAX_CHARACTERS} characters", text.span(0, 1), "split the op in several")
        return None
    for i, c in enumerate(value):
        if c not in "\n\t" and not c.isprintable():
            found.error(
                f"the character #x{ord(c):04x} can't stand in a body",
                text.span(i, i + 1),
                "delete it: some editors paste such characters",
            )
            return None
    huge = _HUGE_NUMBER.search(value)
    if huge is not None:
        found.error("this number does not fit in 64 bits", text.span(huge.start(), huge.end()), _TOO_LARGE)
        return None
    for match in reversed(list(_EMPTY_SUBSCRIPT.finditer(value))):
        if match.group().startswith("["):
            text = text.replace(match.start(), match.end(), "[()]")
    return text


def _parse(
    text: SourceText, found: Diagnostics, report: bool = False, wrapped: bool = False, named: Collection[str] = ()
) -> ast.Module | None:
    """Return the tree of a text; None where there is none, recorded with `report` but for words of Python's in `named`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.value)
    except SyntaxError as error:
        if report:
            at = _offset(text.value, error.lineno or 1, (error.offset or 1) - 1)
            end = at + 1
            if isinstance(error, IndentationError):
                at = _offset(text.value, error.lineno or 1, 0)
                at += len(text.value[at:]) - len(text.value[at:].lstrip(" \t"))
                end = at + 1
            elif error.end_lineno == error.lineno and (error.end_offset or 0) > (error.offset or 0):
                end = at + (error.end_offset or 0) - (error.offset or 0)
            refusal = reworded(error.msg or "invalid syntax", text.value, at, end, wrapped)
            if text.value[refusal.at : refusal.end] in named:
                return None
            found.error(refusal.message, text.span(refusal.at, refusal.end), refusal.hint)
    except (RecursionError, MemoryError, ValueError):
        found.error(f"nested more than {MAX_DEPTH} deep", text.span(0, 1), "split it with temporaries")
    return None


def _offset(value: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        next_start = value.find("\n", start) + 1
        if next_start == 0:
            break
        start = next_start
    return min(start + max(column, 0), len(value))


def _chunks(value: str) -> list[tuple[int, int]]:
    """Return the stretches that begin with a line that is neither indented nor a closing bracket."""
    starts: list[int] = []
    at = 0
    for line in value.splitlines(keepends=True):
        if line.strip() and line[0] not in " \t)]},#":
            starts.append(at)
        at += len(line)
    if not starts:
        return [(0, len(value))]
    starts[0] = 0
    return [(start, end) for start, end in zip(starts, [*starts[1:], len(value)], strict=True)]


def _statements(text: SourceText, module: ast.Module, found: Diagnostics) -> tuple[Statement, ...]:
    converter = _Converter(text, found)
    every = [converter.statement(node) for node in module.body]
    return tuple(s for s in every if s is not None)


class _Converter:
    """Turns `ast` nodes into the untyped tree; None stands for a part with a recorded mistake."""

    def __init__(self, text: SourceText, found: Diagnostics) -> None:
        self.text = text
        self.found = found
        self.lines = text.value.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def _at(self, line: int, byte: int) -> int:
        text = self.lines[line - 1]
        column = byte if text.isascii() else len(text.encode()[:byte].decode("utf-8", "ignore"))
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> Span:
        end_line, end_byte = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset + 1
        return self.text.span(self._at(node.lineno, node.col_offset), self._at(end_line, end_byte))

    def _error(self, message: str, node: ast.expr | ast.stmt, hint: str | None = None) -> None:
        self.found.error(message, self.span(node), hint)

    def statement(self, node: ast.stmt) -> Statement | None:
        if deep := too_deep(node):
            self._error(deep, node, "split it with temporaries")
            return self._broken(node.targets[0]) if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.AugAssign):
            hint = "sums are written sum[k](...), not +="
            if isinstance(node.target, ast.Subscript) and any(isinstance(n, ast.Subscript) for n in ast.walk(node.target.slice)):
                hint = "to add where a number says, sum over those whose number it is: y[k] = sum[n](x[n] if ids[n] == k else 0)"
            self._error("each tensor is assigned once", node, hint)
            return self._broken(node.target)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare) and isinstance(node.value.ops[0], ast.Eq):
            self._error("this is a comparison, not an assignment", node, "write = to assign")
            return self._broken(node.value.left)
        if not isinstance(node, ast.Assign):
            self._error(_STATEMENTS, node, "write name[indices] = expression")
            return None
        target = node.targets[0]
        value = self.expression(node.value)
        if len(node.targets) > 1 or isinstance(target, ast.Tuple | ast.List | ast.Starred):
            self._error("one statement assigns one tensor", target, "write one statement for each")
            return None
        base = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(base, ast.Name):
            self._error(_STATEMENTS, target, "write name[indices] = expression")
            return None
        items = self._items(target.slice) if isinstance(target, ast.Subscript) else None
        if value is None or (items is None and isinstance(target, ast.Subscript)):
            return self._broken(target)
        return Statement(Name(base.id, self.span(base)), items, self.span(target), value, self.span(node))

    def _broken(self, target: ast.expr) -> Statement | None:
        """Return what is left of a statement with a mistake: the name it assigns, so that its uses are no mistakes too."""
        base = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(base, ast.Name):
            return None
        span = self.span(base)
        return Statement(Name(base.id, span), None, span, None, span)

    def expression(self, node: ast.expr) -> Tree | None:
        if deep := too_deep(node):
            self._error(deep, node, "split it with temporaries")
            return None
        return self._expression(node)

    def _expression(self, node: ast.expr) -> Tree | None:
        span = self.span(node)
        match node:
            case ast.Name():
                return Name(node.id, span)
            case ast.Constant():
                return self._literal(node, span)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                arg = self._expression(node.operand)
                match node.op:
                    case ast.USub():
                        if isinstance(arg, Literal) and isinstance(arg.value, int | float) and not isinstance(arg.value, bool):
                            return self._number(-arg.value, node)
                        return self._operation("neg", "-", (arg,), span)
                    case ast.UAdd():
                        return arg
                    case ast.Not():
                        return self._operation("not", "not", (arg,), span)
                    case ast.Invert():
                        return self._operation("bit_not", "~", (arg,), span)
            case ast.BoolOp():
                name = "and" if isinstance(node.op, ast.And) else "or"
                return self._chain(name, [self._expression(v) for v in node.values], span)
            case ast.Compare():
                return self._compare(node, span)
            case ast.IfExp():
                then, cond, other = (self._expression(e) for e in (node.body, node.test, node.orelse))
                if then is None or cond is None or other is None:
                    return None
                return Conditional(cond, then, other, span)
            case ast.Subscript():
                base = self._expression(node.value)
                items = self._items(node.slice)
                return None if base is None or items is None else Subscript(base, items, span)
            case ast.Call():
                return self._call(node, span)
            case ast.Tuple():
                self._error("a comma makes no value here", node, "remove the comma, or write one statement for each value")
            case ast.Attribute():
                self._error("a name has no parts", node, of_part(_base(node), node.attr))
            case ast.Slice():
                self._error("a slice is no index", node, "name an index: y[i] = x[i + 1]")
            case ast.Starred():
                self._error("*A stands in brackets only", node, "write x[*A]")
            case _:
                self._error(
                    "this is not part of the language",
                    node,
                    "a body holds numbers, names, reads, operators, conditionals and calls of functions",
                )
        return None

    def _binary(self, node: ast.BinOp) -> Tree | None:
        # Sums are as deep to the left as they have terms: they are not recursed into.
        waiting = [node]
        while isinstance(waiting[-1].left, ast.BinOp):
            waiting.append(waiting[-1].left)
        result = self._expression(waiting[-1].left)
        for outer in reversed(waiting):
            right = self._expression(outer.right)
            if type(outer.op) in _FOREIGN:
                result = self._foreign(outer.op, outer)
            else:
                result = self._operation(*_BINARY[type(outer.op)], (result, right), self.span(outer))
        return result

    def _foreign(self, op: ast.AST, node: ast.expr) -> Tree | None:
        symbol, hint = _FOREIGN[type(op)]
        self._error(f"`{symbol}` is not part of the language", node, hint)
        return None

    def _operation(self, op: str, text: str, args: tuple[Tree | None, ...], span: Span) -> Tree | None:
        known = tuple(a for a in args if a is not None)
        return Operation(op, text, known, span) if len(known) == len(args) else None

    def _chain(self, op: str, args: list[Tree | None], span: Span) -> Tree | None:
        result = args[0]
        for arg in args[1:]:
            here = span if result is None or arg is None else result.span.until(arg.span)
            result = self._operation(op, op, (result, arg), here)
        return result

    def _compare(self, node: ast.Compare, span: Span) -> Tree | None:
        if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            return self._among(node, span)
        values = [self._expression(e) for e in (node.left, *node.comparators)]
        pairs: list[Tree | None] = []
        for op, left, right in zip(node.ops, values, values[1:]):
            if type(op) in _FOREIGN:
                return self._foreign(op, node)
            here = span if left is None or right is None else left.span.until(right.span)
            pairs.append(self._operation(*_COMPARE[type(op)], (left, right), here))
        return self._chain("and", pairs, span)

    def _among(self, node: ast.Compare, span: Span) -> Tree | None:
        right = node.comparators[0]
        named = right.elts if isinstance(right, ast.List | ast.Tuple) else [right]
        dtypes = tuple(Name(e.id, self.span(e)) for e in named if isinstance(e, ast.Name))
        negated = isinstance(node.ops[0], ast.NotIn)
        if len(node.ops) > 1 or not isinstance(node.left, ast.Name) or len(dtypes) < len(named) or not dtypes:
            instead = "write `a != b and a != c`" if negated else "write `a == b or a == c`"
            message = f"`{'not in' if negated else 'in'}` asks what a type stands for: T in floating, T in [int8, uint8]"
            self._error(message, node, f"of values, {instead}")
            return None
        return Among(Name(node.left.id, self.span(node.left)), dtypes, negated, span)

    def _literal(self, node: ast.Constant, span: Span) -> Tree | None:
        value = node.value
        if isinstance(value, bool | str):
            return Literal(value, span)
        if isinstance(value, int | float):
            return self._number(value, node)
        if value is Ellipsis:
            self._error("`...` stands in brackets only", node, "write x[...]")
        elif value is None:
            self._error("there is no None", node, "ask present(b) for an optional operand")
        else:
            self._error(
                "complex numbers and bytes are not part of the language",
                node,
                "a number is written 1 or 1.0; complex numbers are two tensors",
            )
        return None

    def _number(self, value: int | float, node: ast.expr) -> Literal | None:
        if isinstance(value, int) and value not in _WHOLE:
            self._error("this number does not fit in 64 bits", node, _TOO_LARGE)
            return None
        if isinstance(value, float) and math.isinf(value):
            self._error("this number is beyond 1.8e308, the largest of float64", node, "infinity is written inf")
            return None
        return Literal(value, self.span(node))

    def _call(self, node: ast.Call, span: Span) -> Tree | None:
        for kw in node.keywords:
            self._error("arguments have no names here", kw.value, "write them in order")
        args = [self._item(a) for a in node.args]
        known = tuple(a for a in args if a is not None)
        if node.keywords or len(known) < len(args):
            return None
        match node.func:
            case ast.Name() as fn:
                return Apply(Name(fn.id, self.span(fn)), known, span)
            case ast.Subscript(value=ast.Name() as base) as subscript:
                axes = self._items(subscript.slice)
                if axes is None:
                    return None
                plain = [a for a in known if not isinstance(a, Dots | Star | AxisRange)]
                if len(plain) < len(known) or len(plain) not in ((1, 2) if base.id == ORDER else (1,)):
                    what = "what it orders, and whether that is descending," if base.id == ORDER else "one expression"
                    self._error(
                        f"{base.id}[...] takes {what} in parentheses",
                        node,
                        f"write {base.id}[k](x[k], True)[i]" if base.id == ORDER else f"write {base.id}[k](x[k])",
                    )
                    return None
                descending = plain[1] if len(plain) == 2 else None
                return ReductionCall(Name(base.id, self.span(base)), axes, plain[0], span, descending)
            case ast.Attribute():
                self._error("a name has no parts", node.func, of_part(_base(node.func), node.func.attr))
            case _:
                self._error("only functions are called", node.func, "write a * b for a product")
        return None

    def _items(self, node: ast.expr) -> tuple[Item, ...] | None:
        elements = node.elts if isinstance(node, ast.Tuple) else [node]
        known = tuple(i for i in (self._item(e) for e in elements) if i is not None)
        return known if len(known) == len(elements) else None

    def _item(self, node: ast.expr) -> Item | None:
        span = self.span(node)
        match node:
            case ast.Constant(value=value) if value is Ellipsis:
                return Dots(span)
            case ast.Starred(value=ast.Name() as group):
                return Star(group.id, span)
            case ast.Starred():
                self._error("a star stands before the name of an axis group", node, "write x[*A]")
                return None
            case ast.Slice(lower=ast.Name() as index, upper=ast.expr() as upper, step=None):
                extent = self._expression(upper)
                return None if extent is None else AxisRange(Name(index.id, self.span(index)), extent, span)
            case _:
                return self._expression(node)


def _base(node: ast.Attribute) -> str | None:
    return node.value.id if isinstance(node.value, ast.Name) else None
