"""The names of variables as they are printed: what a transformation calls `low#7` is `low`, or `low_2` where that is taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from opc.ir.expr import Expr, IndexValue, children, with_children
from opc.loops.nodes import (
    Alias,
    Body,
    Buffer,
    Function,
    GroupPoints,
    Kernel,
    Let,
    Loop,
    Scope,
    Statement,
    Var,
    bodies,
    own_values,
    with_bodies,
    with_own_values,
)
from opc.loops.values import Block, Intrinsic, Local, Member

RESERVED = frozenset(
    "nest call begin end at unit arguments place count buffer out row lanes to phase phases pitch low_place high_place stride zero "
    "position copies point".split()
)
"""The parameters of every function, and the variables that intrinsics know by name."""


def named(kernel: Kernel, taken: Iterable[str]) -> Kernel:
    """Return a function whose variables have names of their own, none of which is `taken`."""
    kept = RESERVED.union(taken)
    return replace(kernel, body=_Namer(kept, set(kept)).body(kernel.body, {}))


class _Namer:
    def __init__(self, kept: frozenset[str], used: set[str]) -> None:
        self.kept, self.used = kept, used

    def _fresh(self, name: str, env: dict[str, str]) -> str:
        """Return the name of a variable that is declared here, by which it is known in `env` from here on."""
        if name in self.kept:
            return name
        wanted = name.partition("#")[0]
        found, count = wanted, 2
        while found in self.used:
            found, count = f"{wanted}_{count}", count + 1
        self.used.add(found)
        env[name] = found
        return found

    def body(self, body: Body, env: Mapping[str, str]) -> Body:
        """Return a body with the names of its variables, inside of which those of `env` are known."""
        known = dict(env)
        return tuple([self._statement(s, known) for s in body])

    def _statement(self, s: Statement, env: dict[str, str]) -> Statement:
        if isinstance(s, Loop | Scope | Function | GroupPoints):
            return self._with_scope(s, env)
        s = with_own_values(s, tuple(self._value(v, env) for v in own_values(s)))
        s = with_bodies(s, tuple(self.body(b, env) for b in bodies(s)))
        match s:
            case Let() | Var() | Buffer():
                return replace(s, name=self._fresh(s.name, env))
            case Alias():
                return replace(s, variable=env.get(s.variable, s.variable))
            case _:
                return s

    def _with_scope(self, s: Loop | Scope | Function | GroupPoints, env: dict[str, str]) -> Statement:
        inner = dict(env)
        if isinstance(s, Function):
            own = self._fresh(s.name, env)
            params = tuple((of, self._fresh(name, inner)) for of, name in s.params)
            result = None if s.result is None else self._value(s.result, inner)
            return replace(s, name=own, params=params, body=self.body(s.body, inner), result=result)
        values = tuple(self._value(v, env) for v in own_values(s))
        match s:
            case Loop():
                carried = env.get(s.carried, s.carried)
                s = replace(s, index=self._fresh(s.index, inner), carried=carried)
            case GroupPoints():
                s = replace(s, name=self._fresh(s.name, inner))
            case Scope():
                returned = env.get(s.result, "") if s.assigns else self._fresh(s.result, env) if s.result else ""
                s = replace(s, params=tuple((of, self._fresh(name, inner)) for of, name in s.params), result=returned)
        return with_own_values(replace(s, body=self.body(s.body, inner)), values)

    def _value(self, e: Expr, env: Mapping[str, str]) -> Expr:
        match e:
            case IndexValue():
                return replace(e, value=e.value.rename(env))
            case Block():
                known = dict(env)
                body = tuple([self._statement(s, known) for s in e.body])
                return replace(e, body=body, value=self._value(e.value, known))
            case Local():
                index = None if e.index is None else self._value(e.index, env)
                return replace(e, name=env.get(e.name, e.name), index=index)
            case Member():
                return replace(e, owner=env.get(e.owner, e.owner))
            case Intrinsic():
                owner, dot, rest = e.name.partition(".")
                args = tuple(self._value(a, env) for a in e.args)
                return replace(e, name=f"{env.get(owner, owner)}{dot}{rest}", args=args)
            case _:
                return with_children(e, tuple(self._value(c, env) for c in children(e)))
