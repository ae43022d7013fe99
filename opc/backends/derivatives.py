"""How each op of a family is differentiated by others: what to save, what to call, what the results are.

The vjp of an op is the family's op that was derived from it by reverse mode, the jvp the one derived by forward mode. The op
that pushes tangents forward, `J(x) t`, is differentiated by two others: by t with J(x)^T, which is the backward op; and by x
with the backward op's jvp, for the derivative of `c . J(x) t` by x is that of `J(x)^T c` in the direction t. The op that
differentiates the backward op is linear in its cotangents too, and its derivative by these is the backward op's jvp: so a
product with a Hessian by two gradients in turn, of which the second is of what is linear, takes no third order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from opc.analysis.unchanged import unchanged
from opc.backends.derived import cotangent, derivation, differentiable
from opc.ir.expr import reads
from opc.ir.op import Family, Op, Operand, Role
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """One operand given to a call: by its name, None where it counts as zero.

    Where the shape of a missing operand is needed, `like` names an operand that has it, and zeros of that shape are passed.
    """

    name: str | None
    like: str | None = None

    @property
    def operands(self) -> set[str]:
        """The names it mentions."""
        return {n for n in (self.name, self.like) if n is not None}


@dataclass(frozen=True, slots=True)
class Handed:
    """A gradient that is a cotangent itself, which is handed on where it has the shape of the operand `like`: always by None."""

    cotangent: str
    like: str | None


@dataclass(frozen=True, slots=True)
class FamilyCall:
    """A call of another op of the family while one is differentiated.

    `results` says, output by output, which operand of the differentiated op it is the gradient or tangent of; None for one that
    is not needed. `handed` holds those that need no call where a cotangent can be handed on.
    """

    op: Op
    given: tuple[Given, ...]
    results: tuple[str | None, ...]
    handed: Mapping[str, Handed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DerivativeRule:
    """The derivatives of one op.

    `vjp` are the calls that make up its gradients, `jvp` is the one that makes its tangents. `again` is a call of the forward op
    that `vjp` needs the results of; those have the names of the forward op's outputs. `beyond` are inputs by which the op has a
    derivative that the family does not have, beside those by which `vjp` has it.
    """

    op: Op
    vjp: tuple[FamilyCall, ...] = ()
    jvp: FamilyCall | None = None
    again: FamilyCall | None = None
    beyond: tuple[str, ...] = ()

    @property
    def saved(self) -> tuple[str, ...]:
        """The operands that `vjp` needs: inputs first, in the op's order."""
        return self._saved((*self.vjp, *((self.again,) if self.again else ())))

    @property
    def saved_forward(self) -> tuple[str, ...]:
        """The operands that `jvp` needs."""
        return self._saved((self.jvp,) if self.jvp else ())

    def _saved(self, calls: Iterable[FamilyCall]) -> tuple[str, ...]:
        used = {name for call in calls for given in call.given for name in given.operands}
        return tuple(o.name for o in (*self.op.inputs, *self.op.outputs) if o.name in used)


def tangent(name: str) -> str:
    """Return the name of the tangent of an operand."""
    return f"t_{name}"


def incoming(op: Op, output: str) -> str:
    """Return the name of the cotangent of an output while an op is differentiated: that of no operand, though an op that is
    differentiated itself may have one like it."""
    name = cotangent(output)
    return f"grad_{output}" if any(x.name == name for x in op.inputs) else name


def rules(family: Family) -> tuple[DerivativeRule, ...]:
    """Return the rule of every op of the family, in its order."""
    vjp = {family.name: family.backward}
    jvp = {family.name: family.jvp}
    if family.backward:
        vjp[family.backward.name] = family.backward_backward
        jvp[family.backward.name] = family.backward_jvp
    found = []
    for op in family.ops:
        if family.jvp and op.name == family.jvp.name:
            found.append(_JvpRule.of(family) or DerivativeRule(op))
            continue
        if family.backward_backward and op.name == family.backward_backward.name:
            found.append(_by_cotangents(op, family.backward_jvp) or DerivativeRule(op))
            continue
        reverse, forward = vjp.get(op.name), jvp.get(op.name)
        found.append(DerivativeRule(op, (_derived(op, reverse),) if reverse else (), _derived(op, forward) if forward else None))
    return tuple(found)


def _derived(op: Op, derived: Op) -> FamilyCall:
    """Return the call of an op that was derived from the differentiated one."""
    given = []
    for x, (role, name) in zip(derived.inputs, derivation(derived).inputs, strict=True):
        # By broadcasting, the shape of a result may come from an operand whose own value is missing.
        unsure = derived.broadcast and x.optional
        if role is Role.COTANGENT:
            given.append(Given(cotangent(name), _twin(op, op.output(name)) if unsure else None))
        elif role is Role.TANGENT:
            given.append(Given(tangent(name), name if unsure else None))
        else:
            given.append(Given(name))
    return FamilyCall(derived, tuple(given), derivation(derived).outputs, _handed(derived))


def _by_cotangents(op: Op, pushed: Op | None) -> DerivativeRule | None:
    """Return the rule of the op that differentiates the backward op, by its cotangents alone: the backward op's jvp, `pushed`.

    None where that takes what the op does not have.
    """
    if pushed is None:
        return None
    how = derivation(op)
    place = {key: x.name for key, x in zip(how.inputs, op.inputs, strict=True)}
    arriving = {of: incoming(op, o.name) for of, o in zip(how.outputs, op.outputs, strict=True)}
    given = []
    for x, (role, name) in zip(pushed.inputs, derivation(pushed).inputs, strict=True):
        primal = place.get((Role.INPUT, name))
        if role is Role.TANGENT:
            if not x.optional and name not in arriving:
                return None
            given.append(Given(arriving.get(name), primal if pushed.broadcast and x.optional else None))
        elif role is Role.INPUT and primal is not None:
            given.append(Given(primal))
        else:
            return None
    results = tuple(place.get((Role.COTANGENT, of)) for of in derivation(pushed).outputs)
    beyond = tuple(x.name for x in op.inputs if differentiable(x) and x.name not in results)
    return DerivativeRule(op, (FamilyCall(pushed, tuple(given), results),), beyond=beyond) if any(results) else None


def _handed(derived: Op) -> dict[str, Handed]:
    """Return the gradients among the results of a derived op that are cotangents, by the operand each belongs to."""
    how = derivation(derived)
    sources = dict(zip((x.name for x in derived.inputs), how.inputs, strict=True))
    known = {name for role, name in how.inputs if role is Role.INPUT}
    found = {}
    for output, of in zip(derived.outputs, how.outputs, strict=True):
        same = unchanged(derived).get(output.name)
        role, name = sources[same.operand] if same else (None, "")
        # An operand that the gradient does not take has no shape to compare with.
        if same and role is Role.COTANGENT and (same.always or of in known):
            found[of] = Handed(cotangent(name), None if same.always else of)
    return found


def _twin(op: Op, output: Operand) -> str:
    """Return the operand that has an output's shape: an input declared alike, else the output itself."""
    return next((x.name for x in op.inputs if x.is_shaped_like(output)), output.name)


class _JvpRule:
    """Works out the rule of the op that pushes tangents forward; operands are looked up as (role, operand of the forward op)."""

    def __init__(self, forward: Op, backward: Op, backward_jvp: Op, jvp: Op) -> None:
        self.forward, self.backward, self.backward_jvp, self.jvp = forward, backward, backward_jvp, jvp
        self.place = {key: x.name for key, x in zip(derivation(jvp).inputs, jvp.inputs, strict=True)}
        self.pushed = dict(zip(derivation(jvp).outputs, (o.name for o in jvp.outputs), strict=True))
        self.place |= {(Role.COTANGENT, name): cotangent(output) for name, output in self.pushed.items()}
        self.again: FamilyCall | None = None

    @staticmethod
    def of(family: Family) -> DerivativeRule | None:
        """Return the rule, or None when the op lacks an operand needed for it."""
        if not (family.jvp and family.backward and family.backward_jvp):
            return None
        maker = _JvpRule(family.forward, family.backward, family.backward_jvp, family.jvp)
        try:
            calls = (maker.by_tangent(), maker.by_primal())
        except KeyError:
            return None
        # Of a linear op, the tangent does not depend on the primals, and there is nothing to call.
        return DerivativeRule(family.jvp, tuple(c for c in calls if any(c.results)), again=maker.again)

    def by_tangent(self) -> FamilyCall:
        """Return the call of the backward op on the cotangents of the tangents."""
        how = derivation(self.backward)
        given = tuple(Given(self.find(key)) for key in how.inputs)
        return FamilyCall(self.backward, given, tuple(self.place.get((Role.TANGENT, x)) for x in how.outputs))

    def by_primal(self) -> FamilyCall:
        """Return the call of the backward op's jvp in the direction of the tangents, at the cotangents of the tangents."""
        op = self.backward_jvp
        roles = dict(zip((x.name for x in self.backward.inputs), derivation(self.backward).inputs, strict=True))
        primal = dict(zip((o.name for o in self.backward.outputs), derivation(self.backward).outputs, strict=True))
        given, moving = [], set()
        for x, (role, name) in zip(op.inputs, derivation(op).inputs, strict=True):
            of, operand = roles[name]
            unsure = op.broadcast and x.optional
            if role is Role.INPUT:
                given.append(Given(self.find((of, operand))))
            elif of is Role.COTANGENT:
                given.append(Given(None, self.place[(of, operand)] if unsure else None))
            elif of is Role.OUTPUT:
                given.append(Given(self.pushed[operand]))
                moving.add(x.name)
            else:
                given.append(Given(self.place[(Role.TANGENT, operand)]))
                moving.add(x.name)
        results = []
        for output, name in zip(op.outputs, derivation(op).outputs, strict=True):
            # What no tangent reaches is zero, and need not be called for.
            results.append(self.place[(Role.INPUT, primal[name])] if moving & _depends(op, output.name) else None)
        return FamilyCall(op, tuple(given), tuple(results))

    def find(self, key: tuple[Role, str]) -> str:
        """Return where an operand of a derived op is found; KeyError when nowhere."""
        role, name = key
        if key in self.place:
            return self.place[key]
        if role is Role.INPUT and name not in _read(self.backward) | _read(self.backward_jvp):
            return self.place[(Role.TANGENT, name)]  # Only its shape counts.
        if role is not Role.OUTPUT:
            raise KeyError(name)
        given = tuple(Given(self.place[(Role.INPUT, x.name)]) for x in self.forward.inputs)
        self.again = FamilyCall(self.forward, given, tuple(o.name for o in self.forward.outputs))
        return name


def _read(op: Op) -> set[str]:
    """Return the operands whose values an op reads."""
    return {r.operand for s in op.body for r in reads(s.value)}


def _depends(op: Op, name: str) -> set[str]:
    """Return every operand that the value of an output or temporary depends on."""
    found = {name}
    for s in reversed(op.body):
        if s.target in found:
            found |= {r.operand for r in reads(s.value)}
    return found - {name}
