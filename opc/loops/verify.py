"""What holds of every function of the loop IR, whichever transformations it went through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opc.analysis.value_types import presence
from opc.ir.expr import PRESENCE, Call, Expr, IndexValue, Present, Read, Reduce, Select, traits
from opc.ir.expr_nodes import CHILDREN
from opc.ir.verify import VerifyError
from opc.loops.intrinsics import HEADER
from opc.loops.nodes import (
    Alias,
    Body,
    Buffer,
    CallWithBody,
    Continue,
    GroupPoints,
    If,
    Kernel,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Statement,
    Var,
    While,
    Yield,
    bodies,
    own_values,
)
from opc.loops.values import Block, Intrinsic, Lambda, Load, Local, Speculative


def verify_kernel(kernel: Kernel, known: Iterable[str] = ()) -> None:
    """Check a function: what it uses is declared before, every intrinsic exists, and no known condition is tested.

    `known` are the names of what the function is called with.

    Raises:
        VerifyError: with what does not hold, and where.
    """
    names = {*known, *(v.name for v in kernel.views), *kernel.flags}
    _KernelVerifier(kernel).body(kernel.body, names, frozenset(), loop=False, block=False)
    for form in kernel.forms:
        verify_kernel(form.kernel, known)


class _KernelVerifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def _fail(self, message: str) -> None:
        raise VerifyError(f"{self.kernel.form} of {', '.join(self.kernel.operands)}: {message}")

    def body(self, body: Body, names: Iterable[str], given: frozenset[str], *, loop: bool, block: bool) -> None:
        """Check statements where `names` are declared and the operands `given` are known to be present."""
        known = set(names)
        for s in body:
            self._statement(s, known, given, loop, block)

    def _statement(self, s: Statement, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        check = _STATEMENTS.get(s.__class__)
        if check is not None:
            check(self, s, names, given, loop, block)
            return
        for value in own_values(s):
            self._value(value, names, given)
        assert not bodies(s), "statements with bodies are among those with rules"

    def _continue(self, s: Continue, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        if not loop:
            self._fail("a continue outside of a loop")

    def _yield(self, s: Yield, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        if not block:
            self._fail("a result outside of a block")
        self._value(s.value, names, given)

    def _function(self, s: LocalFunction, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        inner = {*names, *(name for _, name in s.params)}
        for inner_statement in s.body:
            self._statement(inner_statement, inner, given, False, block)
        if s.result is not None:
            self._value(s.result, inner, given)
        names.add(s.name)

    def _let(self, s: Let, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        self._value(s.value, names, given)
        self._declare(s.name, names)

    def _declaration(self, s: Var | Buffer | Alias, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        for value in own_values(s):
            self._value(value, names, given)
        self._declare(s.name, names)

    def _group(self, s: PassGroup, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        for inner_statement in s.body:
            self._statement(inner_statement, names, given, loop, block)

    def _if(self, s: If, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        self._value(s.cond, names, given)
        asks = traits(s.cond) & PRESENCE
        for b, holds in ((s.then, True), (s.other, False)):
            self.body(b, names, given | presence(s.cond, holds) if asks else given, loop=loop, block=block)

    def _loop(self, s: Loop, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        for value in own_values(s):
            self._value(value, names, given)
        inner = set(names)
        self._declare(s.index, inner)
        self.body(s.body, inner, given, loop=True, block=block)

    def _points(self, s: GroupPoints, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        for value in s.over:
            self._value(value, names, given)
        self.body(s.body, {*names, s.name}, given, loop=True, block=block)

    def _while(self, s: While, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        self._value(s.cond, names, given)
        self.body(s.body, names, given, loop=True, block=block)

    def _call_with_body(self, s: CallWithBody, names: set[str], given: frozenset[str], loop: bool, block: bool) -> None:
        self._value(s.call, names, given)
        self.body(s.body, {*names, *(name for _, name in s.params)}, given, loop=False, block=block)

    def _declare(self, name: str, names: set[str]) -> None:
        if name in names:
            self._fail(f"{name} is declared again where it is known")
        names.add(name)

    def _value(self, e: Expr, names: set[str], given: frozenset[str]) -> None:
        check = _CHECKS.get(e.__class__)
        if check is not None and check(self, e, names, given):
            return
        for c in CHILDREN[e.__class__](e):
            self._value(c, names, given)

    def _left(self, e: Expr, names: set[str], given: frozenset[str]) -> bool:
        self._fail(f"a {type(e).__name__} is left")
        return True

    def _present(self, e: Present, names: set[str], given: frozenset[str]) -> bool:
        if e.operand in given:
            self._fail(f"whether {e.operand} is present is asked where that is known")
        return True

    def _local(self, e: Local, names: set[str], given: frozenset[str]) -> bool:
        if e.name not in names:
            self._fail(f"{e.name} is not declared where it is used")
        return e.index is None

    def _load(self, e: Load, names: set[str], given: frozenset[str]) -> bool:
        if e.view not in names:
            self._fail(f"{e.view} is not declared where it is used")
        return False

    def _index(self, e: IndexValue, names: set[str], given: frozenset[str]) -> bool:
        if not e.value.indices() <= names:
            self._fail(f"{', '.join(sorted(e.value.indices() - names))} is not declared where it is used")
        return True

    def _intrinsic(self, e: Intrinsic, names: set[str], given: frozenset[str]) -> bool:
        if "." not in e.name and e.name not in HEADER:
            self._fail(f"{e.name} is no intrinsic")
        return False

    def _select(self, e: Select, names: set[str], given: frozenset[str]) -> bool:
        self._value(e.cond, names, given)
        asks = traits(e.cond) & PRESENCE
        self._value(e.then, names, given | presence(e.cond, True) if asks else given)
        self._value(e.other, names, given | presence(e.cond, False) if asks else given)
        return True

    def _call(self, e: Call, names: set[str], given: frozenset[str]) -> bool:
        if e.fn not in ("and", "or") or not traits(e) & PRESENCE:
            return False
        self._value(e.args[0], names, given)
        for a in e.args[1:]:
            self._value(a, names, given | presence(e.args[0], e.fn == "and"))
        return True

    def _block(self, e: Block, names: set[str], given: frozenset[str]) -> bool:
        inner = set(names)
        for s in e.body:
            self._statement(s, inner, given, loop=False, block=True)
        self._value(e.value, inner, given)
        return True

    def _lambda(self, e: Lambda, names: set[str], given: frozenset[str]) -> bool:
        self.body(e.body, {*names, *(name for _, name in e.params)}, given, loop=False, block=False)
        return True


_STATEMENTS: Mapping[type, Callable[[_KernelVerifier, Any, set[str], frozenset[str], bool, bool], None]] = {
    Continue: _KernelVerifier._continue,
    Yield: _KernelVerifier._yield,
    LocalFunction: _KernelVerifier._function,
    Let: _KernelVerifier._let,
    Var: _KernelVerifier._declaration,
    Buffer: _KernelVerifier._declaration,
    Alias: _KernelVerifier._declaration,
    PassGroup: _KernelVerifier._group,
    If: _KernelVerifier._if,
    Loop: _KernelVerifier._loop,
    GroupPoints: _KernelVerifier._points,
    While: _KernelVerifier._while,
    CallWithBody: _KernelVerifier._call_with_body,
}
"""What is checked of each class of statements; of the others, the values are."""

_CHECKS: Mapping[type, Callable[[_KernelVerifier, Any, set[str], frozenset[str]], bool]] = {
    Read: _KernelVerifier._left,
    Reduce: _KernelVerifier._left,
    Speculative: _KernelVerifier._left,
    Present: _KernelVerifier._present,
    Local: _KernelVerifier._local,
    Load: _KernelVerifier._load,
    IndexValue: _KernelVerifier._index,
    Intrinsic: _KernelVerifier._intrinsic,
    Select: _KernelVerifier._select,
    Call: _KernelVerifier._call,
    Block: _KernelVerifier._block,
    Lambda: _KernelVerifier._lambda,
}
"""What is checked of each class of values, which returns whether their parts were checked too."""
