"""The Python side of a family's operators: fake kernels, derivatives, vectorisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from opc.analysis.constants import constants, unmoved
from opc.backends.batching import batching, needs_batch_axes
from opc.backends.derivatives import DerivativeRule, FamilyCall, Given, Handed, incoming, rules, tangent
from opc.backends.derived import chooses_outputs, differentiable
from opc.backends.shipped import late
from opc.backends.torch.library import templates
from opc.backends.torch.schema import arguments, namespace, shared_type
from opc.emit.python.layout import bracketed, tupled
from opc.emit.python.text import WIDTH, quoted
from opc.ir.op import AttributeKind, Family, Op
from opc.names import registered
from opc.records import dataclass

_RESERVED = {"arriving", "ctx", "inputs", "in_floating", "output", "needs", "or_zeros", "recorded", "results", "wanted"}
"""What the methods of a derivative call things by; an operand of such a name gets an underscore."""


@dataclass(frozen=True, slots=True)
class _PythonOperator:
    """One op of the family as the template sees it; the methods are finished text, empty where there is none."""

    name: str
    made: str
    class_name: str
    about: str
    methods: tuple[str, ...]
    register: str


def operators_source(family: Family) -> str:
    """Return the text of `torch/operators.py`."""
    batched = needs_batch_axes(family)
    operators = [_operator(rule, family, batched) for rule in rules(family)]
    text = "".join(method for o in operators for method in o.methods)
    return templates.render(
        "operators.py.j2",
        family,
        forward=registered(family.name),
        namespace=namespace(family),
        source_hash=family.source_hash,
        operators=operators,
        helpers=[name for name in ("grad_enabled", "in_floating", "or_zeros") if f"{name}(" in text],
    )


def dispatch_source(family: Family) -> str:
    """Return the text of `torch/dispatch.py`, which is the same for every family."""
    return templates.render("dispatch.py.j2", family)


@cache
def _when_imported() -> str:
    """Return the text of `opc.backends.late`, but for its head."""
    text = Path(late.__file__).read_text(encoding="utf-8")
    return text[text.index("def when_imported") :].rstrip()


def late_source(family: Family) -> str:
    """Return the text of `torch/late.py`, which is the same for every family."""
    return templates.render("late.py.j2", family, when_imported=_when_imported())


def _operator(rule: DerivativeRule, family: Family, batched: bool) -> _PythonOperator:
    return _PythonOperator(
        name=rule.op.name,
        made=bracketed(f"{rule.op.name} = Operator(", [quoted(namespace(family)), quoted(registered(rule.op.name))], ")", 0),
        class_name=rule.op.class_name,
        about=f"Derivatives of {rule.op.name}." if rule.vjp or rule.jvp else f"{rule.op.name} has no derivatives here.",
        methods=tuple(_Methods(rule, family, batched).all()),
        register=_register(rule.op, batched),
    )


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _targets(names: Sequence[str]) -> str:
    """Return the left side of an assignment that unpacks a tuple of these."""
    return _tuple(names) if len(names) == 1 else ", ".join(names)


def _unpacked(names: Sequence[str], source: str) -> list[str]:
    """Return the statement, inside a method, that unpacks a tuple into these names."""
    left = _targets(names)
    if len(f"        {left} = {source}") <= WIDTH:
        return [f"        {left} = {source}"]
    if len(f"        {left} = (") <= WIDTH:
        return [f"        {left} = (", f"            {source}", "        )"]
    return ["        (", *(f"            {name}," for name in names), f"        ) = {source}"]


def _exploded(head: str, items: Sequence[str], indent: int) -> str:
    """Return `head`, which ends in a parenthesis, and the rest of a tuple; one item a line where it is too long for one."""
    margin = " " * indent
    line = f"{margin}{head}{_tuple(items)[1:]}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{margin}{head}", *(f"{margin}    {item}," for item in items), f"{margin})"])


class _Methods:
    """Writes the methods of one derivative class."""

    def __init__(self, rule: DerivativeRule, family: Family, batched: bool) -> None:
        self.rule = rule
        self.op = rule.op
        self.reserved = _RESERVED | {op.name for op in family.ops}
        self.arguments = [a.name for a in arguments(rule.op, batched=batched)]
        self.inputs = [x.name for x in self.op.inputs]
        self.extras = [a for a in self.arguments if a not in self.inputs and a != "output_mask"]
        self.masked = chooses_outputs(self.op)
        # What a call may have in integers, where derived ops take floating types alone; and results that have no tangents then.
        self.constants = constants(self.op)
        self.unmoved = unmoved(self.op) if rule.jvp else ()
        # With one differentiable input and one output, neither can be missing when a derivative is computed; but of an output
        # without a derivative something is, for which torch would make zeros as large.
        differentiated = sum(differentiable(o) for o in (*self.op.inputs, *self.op.outputs))
        self.partial = differentiated > 2 or not all(differentiable(o) for o in self.op.outputs)

    def all(self) -> Iterator[str]:
        """Yield the text of each method."""
        rule = self.rule
        if rule.vjp or rule.jvp:
            signature = "    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:"
            yield "\n".join(["    @staticmethod", signature, *self._setup()])
        if rule.vjp:
            yield "\n".join(["    @staticmethod", self._backward_signature(), *self._backward()])
        if rule.jvp:
            yield "\n".join(["    @staticmethod", self._jvp_signature(), *self._jvp(rule.jvp)])

    def _local(self, name: str) -> str:
        return f"{name}_" if name in self.reserved else name

    def _locals(self, names: Sequence[str]) -> list[str]:
        return [self._local(name) for name in names]

    def _in_floating(self, name: str) -> str:
        """Return an operand or attribute as derived ops take it."""
        local = self._local(name)
        return f"in_floating({local}, {quoted(self.constants[name].value)})" if name in self.constants else local

    def _setup(self) -> list[str]:
        rule = self.rule
        saved = {*rule.saved, *rule.saved_forward}
        used = saved | set(self.extras) | ({"output_mask"} if self.masked and rule.jvp else set())
        lines = []
        if used & set(self.arguments):
            names = ["_", *(self._local(a) if a in used else "_" for a in self.arguments)]
            lines += _unpacked(names, "inputs")
        fixed = [o.name for o in self.op.outputs if not differentiable(o)]
        outputs = [self._local(o.name) if o.name in {*saved, *fixed, *self.unmoved} else "_" for o in self.op.outputs]
        if set(outputs) != {"_"}:
            lines.append(f"        {', '.join(outputs)} = output")
        if fixed:
            lines.append(bracketed("ctx.mark_non_differentiable(", self._locals(fixed), ")", 8))
        if self.partial:
            lines.append("        ctx.set_materialize_grads(False)")
        if rule.saved:
            lines.append(bracketed("ctx.save_for_backward(", self._locals(rule.saved), ")", 8))
        if rule.saved_forward:
            lines.append(bracketed("ctx.save_for_forward(", self._locals(rule.saved_forward), ")", 8))
        if self.extras:
            lines.append(_exploded("ctx.attributes = (", [self._in_floating(e) for e in self.extras], 8))
        if self.unmoved:
            moves = [f"{name}.is_floating_point()" for name in self._locals(self.unmoved)]
            lines.append(_exploded("ctx.moves = (", moves, 8))
        if self.masked and rule.jvp:
            lines.append("        ctx.output_mask = output_mask")
        if rule.beyond:
            lines.append("        ctx.tensors = _dispatch.tensors_among(inputs)")
        return lines or ["        pass"]

    def _backward_signature(self) -> str:
        names = [
            f"{incoming(self.op, o.name)}: Tensor | None" if differentiable(o) else f"_{o.name}: None" for o in self.op.outputs
        ]
        return bracketed("def backward(", ["ctx: Any", *names], ") -> tuple[Tensor | None, ...]:", 4)

    def _backward(self) -> list[str]:
        rule = self.rule
        lines: list[str] = []
        arriving = [incoming(self.op, o.name) for o in self.op.outputs if differentiable(o)]
        if self.partial:
            missing = f"all(d is None for d in {_tuple(arriving)})" if len(arriving) > 1 else f"{arriving[0]} is None"
            if len(f"        if {missing}:") > WIDTH:
                lines.append(bracketed("arriving = (", arriving, ")", 8))
                missing = "all(d is None for d in arriving)"
            lines.append(f"        if {missing}:")
            lines.append(f"            return (None,) * {len(self.arguments) + 1}")
        if rule.beyond:
            places = [str(self.arguments.index(name) + 1) for name in rule.beyond]
            lines.append(bracketed("_dispatch.refuse_beyond(", [self.op.name, "ctx", *places], ")", 8))
        lines += self._restore(rule.saved)
        if rule.again:
            lines += self._assign(self._locals([str(r) for r in rule.again.results]), rule.again, ())
        if any(chooses_outputs(c.op) for c in rule.vjp):
            lines.append("        needs = ctx.needs_input_grad")
        made: dict[str, str] = {}
        for c in rule.vjp:
            wanted = ["False" if r is None else f"needs[{self.arguments.index(r) + 1}]" for r in c.results]
            names = ["_" if r is None else o.name for r, o in zip(c.results, c.op.outputs, strict=True)]
            made |= {r: name for r, name in zip(c.results, names, strict=True) if r is not None}
            if not c.handed:
                lines += self._assign(names, c, wanted)
                continue
            lines += self._assign_unless_handed(names, c, wanted)
            made |= {r: self._handed_on(r, f"{made[r]} if wanted[{c.results.index(r)}]", h) for r, h in c.handed.items()}
        results = ["None", *(made.get(a, "None") for a in self.arguments)]
        line = f"        return {', '.join(results)}"
        return [*lines, line if len(line) <= WIDTH else _exploded("return (", results, 8)]

    def _handed_on(self, operand: str, computed: str, found: Handed) -> str:
        """Return the gradient of an operand: computed, or a cotangent itself; an absent operand has none."""
        absent = ""
        if any(i.name == operand and i.optional for i in self.op.inputs):
            absent = f" if ctx.needs_input_grad[{self.arguments.index(operand) + 1}] else None"
        return f"{computed} else {found.cotangent}{absent}"

    def _jvp_signature(self) -> str:
        names = [f"{tangent(x.name)}: Tensor | None" if differentiable(x) else f"_{x.name}: None" for x in self.op.inputs]
        rest = ["*_: None"] if len(self.arguments) > len(self.inputs) else []
        return bracketed("def jvp(", ["ctx: Any", "_keys: None", *names, *rest], ") -> Any:", 4)

    def _jvp(self, derived: FamilyCall) -> list[str]:
        lines = self._restore(self.rule.saved_forward)
        outputs = [o.name for o in self.op.outputs]
        wanted = [f"ctx.output_mask[{outputs.index(r)}]" if self.masked and r else "True" for r in derived.results]
        if self.unmoved:
            return [*self._without_tangents(derived), *lines, *self._moved(derived, wanted)]
        if list(derived.results) == outputs:
            return [*lines, self._call("return ", derived, ["ctx.output_mask"] if self.masked else wanted)]
        names = {str(r): o.name for r, o in zip(derived.results, derived.op.outputs, strict=True)}
        lines += self._assign(list(names.values()), derived, wanted)
        return [*lines, f"        return {', '.join(names.get(o, 'None') for o in outputs)}"]

    def _without_tangents(self, derived: FamilyCall) -> list[str]:
        """Return the statements that end a call none of whose results has a tangent, where there are such."""
        if not {r for r in derived.results if r is not None} <= {*self.unmoved}:
            return []
        nothing = ", ".join(["None"] * len(self.op.outputs))
        return ["        if not any(ctx.moves):", f"            return {nothing}"]

    def _moved(self, derived: FamilyCall, wanted: Sequence[str]) -> list[str]:
        """Return the statements that compute tangents, of which results of integers have none."""
        names = {str(r): o.name for r, o in zip(derived.results, derived.op.outputs, strict=True)}
        for i, name in enumerate(self.unmoved):
            if name in names:
                names[name] += f" if ctx.moves[{i}] else None"
        given = [names.get(o.name, "None") for o in self.op.outputs]
        lines = self._assign([o.name for o in derived.op.outputs], derived, wanted)
        line = f"        return {', '.join(given)}"
        return [*lines, line if len(line) <= WIDTH else _exploded("return (", given, 8)]

    def _restore(self, saved: Sequence[str]) -> list[str]:
        if not saved:
            return []
        held = [f"        {self._local(name)} = {self._in_floating(name)}" for name in saved if name in self.constants]
        return [f"        {_targets(self._locals(saved))} = ctx.saved_tensors", *held]

    def _assign(self, names: Sequence[str], c: FamilyCall, wanted: Sequence[str], indent: int = 8) -> list[str]:
        """Return the statements that call an operator and give its results names."""
        left = ", ".join(names)
        margin = " " * indent
        if len(f"{margin}{left} = {c.op.name}(") <= WIDTH:
            return [self._call(f"{left} = ", c, wanted, indent)]
        return [self._call("results = ", c, wanted, indent), f"{margin}{left} = results"]

    def _assign_unless_handed(self, names: Sequence[str], c: FamilyCall, wanted: Sequence[str]) -> list[str]:
        """Return the statements that call an operator for what is no cotangent handed on, if there is any.

        Where the gradient's own gradient is recorded, the operator makes all results: torch would add what arrives through it to
        what arrives past it in the operands' type, with a rounding for each.
        """
        asked = [self._asked(c, r, w) for r, w in zip(c.results, wanted, strict=True)]
        return [
            "        recorded = grad_enabled()",
            bracketed("wanted = [", asked, "]", 8),
            f"        {' = '.join(name for name in names if name != '_')} = None",
            "        if any(wanted):",
            *self._assign(names, c, ["wanted"], 12),
        ]

    def _asked(self, c: FamilyCall, result: str | None, wanted: str) -> str:
        """Return whether a result is computed: its gradient is needed, and is not a cotangent passed through."""
        handed = c.handed.get(result or "")
        if handed is None:
            return wanted
        unlike = f"{handed.cotangent}.shape != {self._local(handed.like)}.shape" if handed.like else None
        if unlike and len(self.op.outputs) > 1:
            unlike = f"({handed.cotangent} is not None and {unlike})"
        computed = f"recorded or {unlike}" if unlike else "recorded"
        if not chooses_outputs(c.op):
            return computed
        return f"{wanted} and ({computed})" if unlike else f"{wanted} and {computed}"

    def _call(self, prefix: str, c: FamilyCall, wanted: Sequence[str], indent: int = 8) -> str:
        passed = [self._given(g) for g in c.given]
        if self.extras:
            passed.append("*ctx.attributes")
        if chooses_outputs(c.op):
            mask = self._mask(wanted)
            if len(mask) + indent + len("    ,") > WIDTH:
                mask = "\n".join(["[", *(f"{' ' * (indent + 8)}{w}," for w in wanted), f"{' ' * (indent + 4)}]"])
            passed.append(mask)
        return bracketed(f"{prefix}{c.op.name}(", passed, ")", indent)

    def _mask(self, wanted: Sequence[str]) -> str:
        """Return the list that says which outputs are wanted, as a slice where the entries follow one another."""
        if len(wanted) == 1:
            return wanted[0]
        first = int(wanted[0][6:-1]) if wanted[0].startswith("needs[") else None
        if first is not None and list(wanted) == [f"needs[{first + i}]" for i in range(len(wanted))]:
            return f"needs[{first}:{first + len(wanted)}]"
        return f"[{', '.join(wanted)}]"

    def _given(self, given: Given) -> str:
        name = "None" if given.name is None else self._local(given.name)
        return name if given.like is None else f"or_zeros({name}, {self._local(given.like)})"


def _register(op: Op, batched: bool) -> str:
    """Return the statement that registers an operator's kernels."""
    how = batching(op)
    binding = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.DTYPE and a.binds is not None]
    passed = [
        "_library",
        op.class_name,
        f"shapes=shape.infer_shapes_{op.name}",
        f"types=shape.infer_types_{op.name}",
        f"grouped={_tuple([str(g) for g in how.grouped]) if any(how.grouped) else f'(False,) * {len(how.grouped)}'}",
    ]
    attributes = tupled("attributes=", [quoted(a.name) for a in op.attributes], tail=",")
    passed += [attributes.strip().removesuffix(",")] if op.attributes else []
    passed += [f"type_attributes={_tuple(binding)}"] if binding else []
    passed += [] if how.joins_group else ["joins_group=False"]
    passed += ["equal_ranks=True"] if how.equal_ranks and not how.always else []
    passed += [f"axes={_tuple([str(len(op.inputs) + a) for a in how.axes])}"] if how.axes else []
    passed += [f"ranked={how.ranked}"] if how.ranked is not None else []
    passed += ["permutes=True"] if how.permutes else []
    promoted = shared_type(op) if op.derivation is None else ()
    passed += [f"promoted={_tuple([str(i) for i in promoted])}"] if promoted else []
    passed += [f"batch_axes={len(op.inputs) + len(op.attributes)}"] if batched else []
    return bracketed("_dispatch.register(", passed, ")", 0)
