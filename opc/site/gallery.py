"""The gallery: a page for each op, made from its spec, and an index of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from opc.analysis.cost import saved
from opc.analysis.sharding import format_shardings
from opc.editor.cost_text import SAMPLE, OpCost, costs, verdict
from opc.editor.gradient_text import gradient_text
from opc.emit.mathml.statements import condition_formulas, formulas, size_formulas, told_formulas
from opc.ir.op import Family, Operand
from opc.ir.printer import format_attribute, format_dims
from opc.records import dataclass
from opc.site import charts, pictures, texts
from opc.site.plots import Curves, curves, svg
from opc.site.reads import Sample, samples

if TYPE_CHECKING:
    import jinja2

    from opc.backends.base import Backend
    from opc.testing.bench.benchmark import Benchmark

Proof = Mapping[tuple[str, str], str]
"""What was proved of an op on a backend, in words, by the names of the op and the framework."""

FOLDER = PurePosixPath("gallery")
"""Where the pages of ops are among those of a site."""

SPEED = PurePosixPath("benchmarks", "index.md")
"""The page of all ops beside the frameworks."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An op of the gallery: what its spec says, and the spec."""

    family: Family
    spec: str

    @property
    def path(self) -> str:
        """The path of its page."""
        return str(FOLDER / f"{self.family.name}.md")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of what is read: its title, the SVG, in which call it is so, and the same in words."""

    title: str
    svg: str
    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class BackendRow:
    """What a page says of one backend."""

    title: str
    state: str
    proof: str


def gallery(
    ops: Sequence[Shown], backends: Sequence[Backend], proof: Proof | None = None, bench: Benchmark | None = None
) -> dict[str, str]:
    """Return the Markdown of the pages by their paths: one an op, and `index.md`.

    With `proof` they say what was proved, with `bench` how fast the ops are; that page of all ops is then there, too.
    """
    ordered = sorted(ops, key=lambda o: o.family.name)
    pages = {o.path: op_page(o, backends, proof, bench) for o in ordered}
    speed = {} if bench is None else {str(SPEED): charts.overview(bench, [o.family.name for o in ordered])}
    rows = "".join(f"| [{o.family.name}]({o.family.name}.md) | {_summary(o)} | {_gradient(o.family)} |\n" for o in ordered)
    head = f"# Gallery of ops\n\n{len(pages)} ops. Each page is made from the op's spec.\n\n"
    head += "| op | what it computes | gradient |\n|---|---|---|\n"
    return {str(FOLDER / "index.md"): head + rows, **pages, **speed}


def _summary(shown: Shown) -> str:
    return texts.prose(texts.first_sentence(shown.family.forward.doc))


def _gradient(family: Family) -> str:
    if family.backward is None:
        return "none"
    return "in the spec" if family.explicit_backward else "derived"


def op_page(shown: Shown, backends: Sequence[Backend], proof: Proof | None = None, bench: Benchmark | None = None) -> str:
    """Return the page of an op, as Markdown with formulas in MathML and a plot in SVG."""
    family, op = shown.family, shown.family.forward
    backward, plotted = family.backward, curves(family)
    read = samples(family)
    measured = [] if bench is None else charts.cases(bench, family.name)
    kept = [name for name, _, _ in saved(backward)] if backward is not None else []
    return _template()(
        family=family,
        op=op,
        backward=backward,
        formulas=(*formulas(op), *(f for f in told_formulas(op) if f not in formulas(op))),
        sizes=size_formulas(op),
        conditions=condition_formulas(op),
        operands=[*(("input", o) for o in op.inputs), *(("output", o) for o in op.outputs)],
        dims=_dims,
        attribute=format_attribute,
        plot=None if plotted is None else svg(family, plotted),
        plot_caption="" if plotted is None else _caption(family, plotted),
        pictures=[_picture(family, sample, number) for number, sample in enumerate(read)],
        linked=any(r.links for sample in read for r in sample.reads.values()),
        verdict=None if backward is None else verdict(backward),
        saved=", ".join(kept) or "nothing",
        gradients=() if backward is None else formulas(backward),
        gradient_text="" if backward is None else gradient_text(backward),
        sample=SAMPLE,
        costs=_costs(family),
        bars=charts.bars(family.name, measured) if measured else None,
        times=charts.table(measured),
        sharding="\n".join(format_shardings(o) for o in family.ops[:2]),
        backends=list(_backends(family, backends, proof)),
        proved=proof is not None,
        spec=shown.spec,
        references=[*family.reference.onnx, *([family.reference.torch] if family.reference.torch else [])],
    )


def _dims(operand: Operand) -> str:
    return format_dims(operand.dims)


def _costs(family: Family) -> list[OpCost]:
    """Return what the ops of a family cost; nothing where sizes that are all alike suit none of its calls."""
    try:
        return list(costs(family, {}))
    except ValueError:
        return []


def _caption(family: Family, plotted: Curves) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in plotted.attributes.items())
    what = f"{family.name} (solid)" + ("" if plotted.slope is None else " and its derivative (dashed)")
    return f"{what}, with {given}." if given else f"{what}."


def _picture(family: Family, sample: Sample, number: int) -> Picture:
    shown = sample.attributes if sample.changed is None else {sample.changed: sample.attributes[sample.changed]}
    call = ", ".join(f"{name} = {list(value) if isinstance(value, tuple) else value}" for name, value in shown.items())
    title = f"What {family.name} reads" + (f", with {call}" if call else "")
    caption = f"With {call}." if call else ""
    return Picture(title, pictures.svg(sample, f"reads-{family.name}-{number}", title), caption, " ".join(pictures.told(sample)))


def _backends(family: Family, backends: Sequence[Backend], proof: Proof | None) -> Iterator[BackendRow]:
    for backend in backends:
        reasons = backend.requires(family)
        state = f"refused: {'; '.join(r.message for r in reasons)}" if reasons else "carries it"
        yield BackendRow(backend.title, state, (proof or {}).get((family.name, backend.title), ""))


@cache
def _template() -> Callable[..., str]:
    """Return what renders the page of an op."""
    import jinja2

    environment: jinja2.Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("opc.site"), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: Mapping[str, Callable[..., str]] = {
        "prose": texts.prose,
        "code": texts.code,
        "words": texts.words,
        "in_fence": texts.in_fence,
    }
    environment.filters.update(filters)
    return environment.get_template("op.md").render
