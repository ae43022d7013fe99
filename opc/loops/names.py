"""The names of variables as they are printed: what a transformation calls `low#7` is `low`, or `low_2` where that is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opc.diagnostics import NO_SPAN
from opc.ir.expr import Expr, Extension, IndexValue, with_children
from opc.ir.expr_nodes import CHILDREN
from opc.loops.nodes import (
    Alias,
    Body,
    Buffer,
    CallWithBody,
    GroupPoints,
    Kernel,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Statement,
    Var,
    bodies,
    declared_in,
    own_values,
    with_bodies,
    with_own_values,
)
from opc.loops.values import Address, Block, Intrinsic, Lambda, Load, Local, Member, Named, Static, variable
from opc.names import unused
from opc.records import replace

PARAMETERS = frozenset(("nest", "call", "tile", "begin", "end", "arguments"))
"""The parameters of functions, which transformations call `@nest`, and what is read of them."""

DEVICE_PARAMETERS = PARAMETERS | {"described", "whole", "Nest", "Plain", "Tiles"}
"""Those of functions on a device, and what they are templates over beside types."""


def parameters_of(kernel: Kernel) -> frozenset[str]:
    """Return the names of a function's parameters, and of the type of the elements that it converts."""
    return PARAMETERS if kernel.converts is None else PARAMETERS | {f"{kernel.converts.name}_stored"}


def named(kernel: Kernel, taken: Iterable[str], parameters: frozenset[str] = PARAMETERS) -> Kernel:
    """Return a function whose variables and views have names of their own, none of which is `taken` or one of its `parameters`.

    A variable that is called `@count` is `count`: it has one name wherever it stands, since the runtime knows it by that.
    """
    fixed = parameters.union(_fixed(kernel.body))
    views = {name: f"{name}_" for name in kernel.operands if name in fixed}
    taken = fixed.union(taken, kernel.operands, views.values())
    namer = _Namer(frozenset(taken), frozenset(kernel.operands))
    body = namer.body(kernel.body, {**views, **{f"@{name}": name for name in fixed}})
    return replace(kernel, body=body, views=tuple(replace(v, name=views.get(v.name, v.name)) for v in kernel.views))


def _fixed(body: Body) -> list[str]:
    """Return the names of the variables that have one name wherever they stand."""
    return [name[1:] for name in declared_in(body) if name.startswith("@")]


def numbered(kernel: Kernel) -> Kernel:
    """Return a function whose operands and variables have numbers for names: functions that compute alike are the same then."""
    names = {name: f"operand {n}" for n, name in enumerate(kernel.operands)}
    views = {v.name: names.get(v.name, names[kernel.operands[v.entry]]) for v in kernel.views}
    body = _Numberer(frozenset(), frozenset()).body(kernel.body, {**names, **views})
    found = tuple(replace(v, name=views[v.name]) for v in kernel.views)
    return replace(kernel, operands=tuple(names.values()), views=found, body=body)


class _Namer:
    def __init__(self, taken: frozenset[str], operands: frozenset[str]) -> None:
        self.taken, self.operands = taken, operands

    def _fresh(self, name: str, env: dict[str, str]) -> str:
        """Return the name of a variable that is declared here, by which it is known in `env` from here on."""
        if name.startswith("@") or (name in self.operands and "#" not in name):
            return env.get(name, name.removeprefix("@"))
        env[name] = found = unused(name.partition("#")[0], self.taken, env.values())
        return found

    def body(self, body: Body, env: Mapping[str, str]) -> Body:
        """Return a body with the names of its variables, inside of which those of `env` are known."""
        known = dict(env)
        return tuple([self._statement(s, known) for s in body])

    def _statement(self, s: Statement, env: dict[str, str]) -> Statement:
        rule = _STATEMENTS.get(s.__class__)
        if rule is not None:
            return rule(self, s, env)
        if values := own_values(s):
            s = with_own_values(s, self._values(values, env))
        return with_bodies(s, tuple([self.body(b, env) for b in inner])) if (inner := bodies(s)) else s

    def _group(self, s: PassGroup, env: dict[str, str]) -> PassGroup:
        return PassGroup(tuple([self._statement(t, env) for t in s.body]))

    def _let(self, s: Let, env: dict[str, str]) -> Let:
        value, kind = self._value(s.value, env), s.kind
        return Let(self._fresh(s.name, env), self._kind(kind, env) if isinstance(kind, Named) else kind, value)

    def _var(self, s: Var, env: dict[str, str]) -> Var:
        value, kind = None if s.value is None else self._value(s.value, env), self._kind(s.kind, env)
        return Var(self._fresh(s.name, env), kind, value)

    def _buffer(self, s: Buffer, env: dict[str, str]) -> Buffer:
        size = s.size if isinstance(s.size, str) else self._value(s.size, env)
        return replace(s, name=self._fresh(s.name, env), size=size)

    def _loop(self, s: Loop, env: dict[str, str]) -> Loop:
        inner = dict(env)
        low, high = self._value(s.low, env), self._value(s.high, env)
        step = None if s.step is None else self._value(s.step, env)
        after = None if s.after is None else self._call(s.after, env)
        index = self._fresh(s.index, inner)
        body = tuple([self._statement(t, inner) for t in s.body])
        carried, ahead = env.get(s.carried, s.carried), env.get(s.ahead, s.ahead)
        return Loop(s.how, index, low, high, body, step, s.down, carried, s.carried_kind, s.short, ahead, after)

    def _points(self, s: GroupPoints, env: dict[str, str]) -> GroupPoints:
        inner = dict(env)
        over = self._values(s.over, env)
        return GroupPoints(self._fresh(s.name, inner), over, tuple([self._statement(t, inner) for t in s.body]))

    def _call_with_body(self, s: CallWithBody, env: dict[str, str]) -> CallWithBody:
        inner = dict(env)
        call = self._call(s.call, env)
        params = tuple([(of, self._fresh(name, inner)) for of, name in s.params])
        return CallWithBody(call, params, self.body(s.body, inner), s.inlined)

    def _function(self, s: LocalFunction, env: dict[str, str]) -> LocalFunction:
        inner = dict(env)
        own = self._fresh(s.name, env)
        params = tuple([(of, self._fresh(name, inner)) for of, name in s.params])
        body = tuple([self._statement(t, inner) for t in s.body])
        result = None if s.result is None else self._value(s.result, inner)
        return LocalFunction(own, params, body, result, s.returns, s.inlined)

    def _call(self, e: Intrinsic, env: Mapping[str, str]) -> Intrinsic:
        name = e.name
        if "." in name:
            owner, dot, rest = name.partition(".")
            name = f"{env.get(owner, owner)}{dot}{rest}"
        types = tuple([self._kind(t, env) for t in e.types]) if e.types else ()
        return Intrinsic(name, self._values(e.args, env), e.type, types)

    def _values(self, values: tuple[Expr, ...], env: Mapping[str, str]) -> tuple[Expr, ...]:
        return tuple([self._value(v, env) for v in values])

    def _value(self, e: Expr, env: Mapping[str, str]) -> Expr:
        rule = _RULES.get(e.__class__)
        if rule is not None:
            return rule(self, e, env)
        below = CHILDREN[e.__class__](e)
        return with_children(e, tuple([self._value(c, env) for c in below])) if below else e

    def _index(self, e: IndexValue, env: Mapping[str, str]) -> Expr:
        old = e.value
        if old.index is not None and e.span is NO_SPAN:
            name = env.get(old.index, old.index)
            return e if name == old.index else variable(name)
        value = old.rename(env)
        return e if value is old else IndexValue(value, e.span)

    def _block(self, e: Block, env: Mapping[str, str]) -> Block:
        known = dict(env)
        body = tuple([self._statement(s, known) for s in e.body])
        return Block(body, self._value(e.value, known), e.type)

    def _local(self, e: Local, env: Mapping[str, str]) -> Local:
        name, index = env.get(e.name, e.name), None if e.index is None else self._value(e.index, env)
        return e if name == e.name and index is e.index else Local(name, e.type, index, e.member)

    def _member(self, e: Member, env: Mapping[str, str]) -> Member:
        owner = env.get(e.owner, e.owner)
        return e if owner == e.owner else Member(owner, e.field, e.entry)

    def _load(self, e: Load, env: Mapping[str, str]) -> Load:
        along = None if e.along is None else self._value(e.along, env)
        return Load(env.get(e.view, e.view), self._value(e.offset, env), e.type, e.stored, along)

    def _address(self, e: Address, env: Mapping[str, str]) -> Address:
        return Address(env.get(e.view, e.view), None if e.offset is None else self._value(e.offset, env))

    def _lambda(self, e: Lambda, env: Mapping[str, str]) -> Lambda:
        inner = dict(env)
        params = tuple((of, self._fresh(name, inner)) for of, name in e.params)
        captures = tuple(env.get(c, c) for c in e.captures)
        return Lambda(params, self.body(e.body, inner), captures)

    def _static(self, e: Static, env: Mapping[str, str]) -> Static:
        return replace(e, owner=self._kind(e.owner, env))

    def _kind(self, kind: Any, env: Mapping[str, str]) -> Any:
        """Return a type, or an argument of a template, with the names of the variables in it."""
        if isinstance(kind, Named):
            return Named(kind.name, tuple([self._kind(t, env) for t in kind.of])) if kind.of else kind
        return self._value(kind, env) if isinstance(kind, Extension) else kind


class _Numberer(_Namer):
    """Gives variables the numbers of their declarations."""

    def __init__(self, taken: frozenset[str], operands: frozenset[str]) -> None:
        super().__init__(taken, operands)
        self.count = 0

    def _fresh(self, name: str, env: dict[str, str]) -> str:
        env[name] = found = f"variable {self.count}"
        self.count += 1
        return found


_STATEMENTS: Mapping[type, Callable[[_Namer, Any, dict[str, str]], Statement]] = {
    Loop: _Namer._loop,
    CallWithBody: _Namer._call_with_body,
    LocalFunction: _Namer._function,
    GroupPoints: _Namer._points,
    PassGroup: _Namer._group,
    Let: _Namer._let,
    Var: _Namer._var,
    Buffer: _Namer._buffer,
    Alias: lambda namer, s, env: replace(s, variable=env.get(s.variable, s.variable)),
}
"""What is done to the statements that have names in them; of the others, the values and bodies are renamed."""

_RULES: Mapping[type, Callable[[_Namer, Any, Mapping[str, str]], Expr]] = {
    IndexValue: _Namer._index,
    Block: _Namer._block,
    Local: _Namer._local,
    Member: _Namer._member,
    Load: _Namer._load,
    Address: _Namer._address,
    Lambda: _Namer._lambda,
    Intrinsic: _Namer._call,
    Static: _Namer._static,
}
"""What is done to the values that have names in them; of the others, the parts are renamed."""
