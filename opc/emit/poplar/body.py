"""The body of an op as a C++ function: it adds to a graph and a program what computes the op's outputs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping

from opc.emit.cpp.expressions import written
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import WIDTH, message_literal
from opc.emit.poplar.host import HostText
from opc.emit.poplar.values import Values
from opc.ir.affine import Affine
from opc.ir.dtypes import ElementType, Weak
from opc.ir.expr import Const
from opc.ir.op import Assign, AttributeKind, Group, Op
from opc.ir.printer import format_assign
from opc.lower.loop_ir import GroupLoop, IndexLoop
from opc.lower.poplar.nodes import (
    Along,
    AxisRole,
    Case,
    Codelet,
    Convolution,
    Let,
    Map,
    Picked,
    PoplarProgram,
    Product,
    Reduce,
    Refuse,
    Step,
    Store,
    TensorStage,
    View,
    Window,
)
from opc.lower.specialise import Among, Equal
from opc.names import unused

HEAD = """\
inline std::vector<poplar::Tensor> {name}(poplar::Graph &graph, poplar::program::Sequence &prog,
                                   {pad}const std::vector<poplar::Tensor> &inputs, const std::vector<bool> &wanted,
                                   {pad}const attributes &attributes, const poplar::DebugContext &debug) {{"""


def body_function(op: Op, program: PoplarProgram) -> str:
    """Return the function of an op: `std::vector<poplar::Tensor> softmax(graph, prog, inputs, wanted, attributes, debug)`."""
    return _Function(op, program).text()


class _Function:
    def __init__(self, op: Op, program: PoplarProgram) -> None:
        self.op, self.program = op, program
        self.host = HostText(op)

    def text(self) -> str:
        """Return the function."""
        body = [*self._cases()]
        head = HEAD.format(name=self.op.name, pad=" " * len(self.op.name)).split("\n")
        lines = [
            "namespace ipu = opc::ipu;",
            *self.host.bindings(),
            *(["ipu::body body(graph, prog, debug);"] if any("body." in line for line in body) else []),
            f"std::vector<poplar::Tensor> outputs({len(self.op.outputs)});",
            *body,
            "return ipu::results(outputs, wanted);",
        ]
        text = "\n".join(lines)
        unused = [
            f"static_cast<void>({name});" for name in ("graph", "prog", "inputs", "attributes", "debug") if name not in text
        ]
        lines[1:1] = unused
        return "\n".join([*head, *(piece for line in lines for piece in wrap(f"  {line}")), "}"])

    def _cases(self) -> Iterator[str]:
        cases = self.program.cases
        if len(cases) == 1:
            yield from self._case(cases[0])
            return
        for n, case in enumerate(cases):
            word = "if" if n == 0 else "} else if"
            yield f"{word} ({self._condition(case)}) {{" if n < len(cases) - 1 else "} else {"
            yield from (f"  {line}" for line in self._case(case))
        yield "}"

    def _condition(self, case: Case) -> str:
        """Return the condition on attributes and sizes under which a case is the one, where none of those before it is."""
        found = []
        for name, value in case.case.values:
            if isinstance(value, Among):
                kind = self.host.type(next(t for t in self.op.types if t.name == name))
                some = list(dict.fromkeys(self.host.type(d) for d in value.dtypes))
                among = " || ".join(f"{kind} == {t}" for t in some)
                found.append(f"({among})" if len(some) > 1 else among)
                continue
            attribute, text = self.op.attribute(name), self.host.attribute(name)
            if isinstance(value, Equal):
                suffix = "f" if attribute.kind is AttributeKind.FLOAT else ""
                number = f"{float(value.number)!r}f" if suffix and math.isfinite(value.number) else written(value.number)
                found.append(f"{text} {'==' if value.holds else '!='} {number}")
            elif isinstance(value, bool):
                found.append(f"{text} {'!=' if value else '=='} 0")
            else:
                found.append(f"{text} == {message_literal(attribute.values[value])}")
        if case.case.empty:
            empty = " || ".join(f"{self.host.affine(x)} <= 0" for x in case.case.empty)
            found.append(f"({empty})" if found and len(case.case.empty) > 1 else empty)
        return " && ".join(found)

    def _case(self, case: Case) -> Iterator[str]:
        host = self.host
        host.case = case.case.op
        host.tensors = {o.name: host.tensors[o.name] for o in self.op.inputs} | host.outputs
        temporaries = [t for t in case.tensors if not t.output]
        host.tensors |= {t.name: host.namer.fresh(f"{t.name}_tensor") for t in temporaries}
        if temporaries:
            yield f"poplar::Tensor {', '.join(host.tensors[t.name] for t in temporaries)};"
        kinds = {t.name: t.type for t in case.tensors}
        for stage in case.stages:
            if isinstance(stage, Codelet):
                yield from self._codelet(case, stage)
            else:
                yield from _Stage(self.op, host, case, stage, kinds).lines()

    def _codelet(self, case: Case, codelet: Codelet) -> Iterator[str]:
        from opc.emit.poplar.placing import codelet_text

        lines = [line[2:] for line in codelet_text(codelet.stage, self.host)]
        if codelet.total is not None:
            target = case.case.op.operand(codelet.stage.assign.target)
            tensor, total = self.host.tensor(target.name), self.host.tensor(codelet.total)
            value = f"ipu::reduction::sum, ipu::value({tensor}), ipu::loops({{{tensor}.shape()}}), {{}}, {{0}}"
            lines.append(f'{total} = body.store("{codelet.total}", {self.host.computed(target.type)}, {value});')
        yield from guarded(self.host, codelet.needed, lines)


class _Stage:
    """Writes the steps of one stage on tensors."""

    def __init__(self, op: Op, host: HostText, case: Case, stage: TensorStage, kinds: Mapping[str, ElementType]) -> None:
        self.op, self.host, self.case, self.stage, self.kinds = op, host, case, stage, kinds
        known = {*host.namer.taken}
        self.names: dict[str, str] = {}
        for name in stage.names:
            self.names[name] = unused(_word(name), known)
            known.add(self.names[name])
        self.values = Values(host, self.names)

    def lines(self) -> Iterator[str]:
        """Yield the statements, in a scope of their own."""
        yield "{"
        yield from (f"  {line}" for line in self._inside())
        yield "}"

    def _inside(self) -> Iterator[str]:
        stage, host = self.stage, self.host
        refusals = [s for s in stage.steps if isinstance(s, Refuse)]
        for refusal in refusals:
            yield from self._refuse(refusal)
        yield f"const ipu::loops loops({{{', '.join(host.extent(loop) for loop in stage.loops)}}});"
        for view in stage.views:
            yield f"const ipu::value {self.names[view.name]}({self._view(view)});"
        for name, place in stage.indices:
            yield f"const ipu::value {self.names[name]} = body.index(loops, {place});"
        host.indices = {name: self.names[name] for name, _ in stage.indices}
        source = None
        for step in stage.steps:
            if isinstance(step, Refuse):
                continue
            if step.source is not source:
                source = step.source
                yield from _note(source)
            yield from guarded(self.host, step.needed, [self._step(step)]) if isinstance(step, Store) else [self._step(step)]

    def _refuse(self, r: Refuse) -> tuple[str, ...]:
        empty = [f"{self.host.points(self.stage.loops[n])} <= 0" for n in r.empty]
        some = [f"{self.host.points(self.stage.loops[n])} > 0" for n in r.asked]
        used = self.host.asked(r.users)
        used = f"({used})" if " || " in used else used
        terms = [*empty, *some, *([used] if used else [])]
        return f"if ({' && '.join(terms)}) {{", f"  throw poplar::poplar_error({message_literal(r.text)});", "}"

    def _view(self, view: View) -> str:
        tensor = self.host.tensor(view.tensor)
        if self._is_plain(view):
            return tensor
        # From the last axis on, so that those in front keep their places.
        for n, a in reversed([*enumerate(view.axes)]):
            if isinstance(a, Picked):
                tensor = f'body.picked("{view.tensor}", {tensor}, {self._axis(view, n)}, {self.host.affine(a.index)})'
            elif a.taken is not None:
                count, t = self.host.points(self.stage.loops[a.loop]), a.taken
                numbers = ", ".join(self.host.affine(x) for x in (t.step, t.offset, t.divisor))
                fill = f", {self.values.text(Const(t.fill, Weak.FLOAT))}" if t.fill else ""
                tensor = f'body.taken("{view.tensor}", {tensor}, {self._axis(view, n)}, {numbers}, {count}{fill})'
        return f"loops.view({tensor}, {self._axes(view.axes)})"

    def _axis(self, view: View, entry: int) -> str:
        """Return the position of an axis of a tensor, behind those of its groups."""
        before = self.case.case.op.operand(view.tensor).dims[:entry]
        groups = [f"{self.host.group(d.name, d.of)}.size()" for d in before if isinstance(d, Group)]
        single = len(before) - len(groups)
        return " + ".join([*groups, *([str(single)] if single or not groups else [])])

    def _is_plain(self, view: View) -> bool:
        """Whether a tensor's axes are the last of the stage's, in their order, so that the rules of broadcasting place them."""
        count, axes = len(self.stage.loops), [a for a in view.axes if isinstance(a, Along)]
        if len(axes) < len(view.axes) or any(a.taken for a in axes):
            return False
        if self._is_split(view.tensor) or [a.loop for a in axes] != [*range(count - len(axes), count)]:
            return False
        return all(not a.part and (a.own is None or isinstance(a.own, Affine) or n == 0) for n, a in enumerate(axes))

    def _is_split(self, tensor: str) -> bool:
        """Whether an axis that an operand has is two for the case."""
        own = {o.name: o.dims for o in (*self.op.inputs, *self.op.outputs)}
        return tensor in own and own[tensor] != self.case.case.op.operand(tensor).dims

    def _axes(self, axes: tuple[Along | Picked, ...]) -> str:
        texts = []
        for a in axes:
            if isinstance(a, Picked):
                continue
            if a.own is None:
                texts.append(str(a.loop))
            else:
                own = self.host.extent(a.own if isinstance(a.own, GroupLoop) else IndexLoop("", a.own))
                texts.append(f"{{{a.loop}, {own}}}")
        return f"{{{', '.join(texts)}}}"

    def _step(self, step: Step) -> str:
        values = self.values
        match step:
            case Let():
                return f"const ipu::value {self.names[step.name]} = {values.converted(step.value, step.type)};"
            case Map():
                text = f'body.keep("{step.name}", {self.values.converted(step.value, step.type)})'
            case Reduce():
                over = ", ".join(map(str, step.over))
                kind = f"ipu::reduction::{step.kind}"
                text = f'body.reduce("{step.name}", {kind}, {self.values.converted(step.value, step.type)}, loops, {{{over}}})'
            case Product():
                left, right = values.text(step.left), values.text(step.right)
                over = ", ".join(map(str, step.over))
                text = f'body.product("{step.name}", {left}, {right}, loops, {self._axes(step.kept)}, {{{over}}})'
                text = self._given(step, text)
            case Convolution():
                text = self._given(step, self._convolution(step))
            case Store():
                return self._store(step)
            case Refuse():
                raise TypeError("refusals stand ahead of the steps")
        needed = condition(self.host, step.needed)
        return f"const ipu::value {self.names[step.name]} = {f'{needed} ? {text} : ipu::absent()' if needed else text};"

    def _given(self, step: Product | Convolution, text: str) -> str:
        """Return a term of a sum, which is zero without what a call must fix."""
        if not step.given:
            return text
        given = " && ".join(f"({c})" if "||" in c else c for c in map(self.values.condition, step.given))
        text = f"{given} ? {text} : ipu::value(0)"
        return f"({text})" if step.needed else text

    def _convolution(self, step: Convolution) -> str:
        windows = ", ".join(
            f"{{{w.step}, {w.dilation}, {w.offset}, {flag(w.transposed)}, {flag(w.padded)}}}"
            for w in (_Written(self.host, w) for w in step.windows)
        )
        field, kernel = (
            f"ipu::factor({self.host.tensor(name)}, {_roles(axes)})"
            for name, axes in ((step.input, step.input_axes), (step.kernel, step.kernel_axes))
        )
        extent, size = step.groups
        groups = "1" if extent == size else f"ipu::floordiv({self.host.affine(extent)}, {self.host.affine(size)})"
        rest = f"{groups}, {{{windows}}}, loops, {_roles(step.result)}"
        return f'ipu::convolution(body, "{step.name}", {field}, {kernel}, {rest})'

    def _store(self, step: Store) -> str:
        target = step.target
        kind = self.kinds[target.tensor]
        stored = self.host.type(kind) if target.tensor in self.host.outputs else self.host.computed(kind)
        reduction = "" if step.reduction is None else f"ipu::reduction::{step.reduction}, "
        value = self.values.converted(step.value, kind) if step.reduction is not None else self.values.branch(step.value, kind)
        over = "" if step.reduction is None else f", {{{', '.join(map(str, step.over))}}}"
        axes = self._axes(target.axes)
        text = f'body.store("{target.tensor}", {stored}, {reduction}{value}, loops, {axes}{over})'
        if self._is_split(target.tensor):
            text += f".reshape({self.host.dims_of(self.op.output(target.tensor).dims)})"
        return f"{self.host.tensor(target.tensor)} = {text};"


class _Written:
    """A window with its numbers as C++."""

    def __init__(self, host: HostText, w: Window) -> None:
        self.step, self.dilation, self.offset = (host.affine(x) for x in (w.step, w.dilation, w.offset))
        self.transposed, self.padded = w.transposed, w.padded


def _roles(axes: tuple[AxisRole, ...]) -> str:
    texts = (f"{{ipu::role::{a.role}, {a.place}{', true' if a.grouped else ''}}}" for a in axes)
    return f"{{{', '.join(texts)}}}"


def flag(value: bool) -> str:
    """Return a literal."""
    return "true" if value else "false"


def condition(host: HostText, needed: tuple[str, ...]) -> str:
    """Return the condition that one of some outputs is wanted; empty where nothing is asked."""
    names = [o.name for o in host.op.outputs]
    return " || ".join(f"wanted[{names.index(n)}]" for n in needed)


def guarded(host: HostText, needed: tuple[str, ...], lines: list[str]) -> Iterator[str]:
    """Yield statements that are run where one of some outputs is wanted, or always where none are named."""
    found = condition(host, needed)
    if not found:
        yield from lines
        return
    yield f"if ({found}) {{"
    yield from (f"  {line}" for line in lines)
    yield "}"


def _word(name: str) -> str:
    """Return what a value is called: the points of a group by the group's name."""
    if name == "...":
        return "rest_point"
    return f"{name[1:]}_point" if name.startswith("*") else name


def _note(s: Assign) -> Iterator[str]:
    """Yield a comment that shows a statement."""
    text = " ".join(format_assign(s).split())
    for line in textwrap.wrap(text, WIDTH - 10, break_long_words=False, break_on_hyphens=False):
        yield f"// {line}".rstrip("\\")
