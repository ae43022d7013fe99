"""What the backends' checks have in common: sample calls made from a spec's examples, the list of checks, and comparisons.

A check is a method marked with its name:

    class TorchChecks(Checks[TorchSession]):
        @check("vmap", when=has_gradient)
        def vmap(self) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Check, OpError, Session, Unsupported
from opc.backends.derived import differentiable
from opc.ir.dtypes import DTYPES, DType, candidates, numpy_dtype
from opc.ir.op import AttributeKind, Example, Family, Op, Operand
from opc.records import dataclass, replace

if TYPE_CHECKING:
    import numpy as np

    from opc.backends.base import Array

S = TypeVar("S", bound=Session)
M = TypeVar("M", bound=Callable[..., None])

FLOATING = tuple(sorted((d for d in DTYPES if d.is_floating), key=lambda d: -d.bits))
"""The element types that have a gradient, in the order in which calls take them."""


def has_gradient(checks: Checks[Any]) -> bool:
    """Whether the op has a gradient."""
    return checks.family.backward is not None


def has_second_gradient(checks: Checks[Any]) -> bool:
    """Whether the op has a second gradient."""
    return checks.family.backward_backward is not None


def lists_axes(checks: Checks[Any]) -> bool:
    """Whether the op has an attribute that lists axes, and is called as a function of Python's."""
    return checks.by_python and any(a.picks is not None for a in checks.op.attributes)


def leaves_sizes(checks: Checks[Any]) -> bool:
    """Whether the op has sizes that data tells."""
    return bool(checks.op.told)


def assert_asks_for_sizes(call: Callable[[], object]) -> None:
    """Assert that a call that has no data is refused, and told to give the sizes that data tells."""
    try:
        call()
    except TypeError as error:
        message = str(error)
    else:
        message = "the call was accepted"
    assert message.endswith("sizes that data tells must be given"), message


def assert_refused_alike(op: str, one: Callable[[], object], batch: Callable[[], object], about: object) -> None:
    """Assert that a call of a batch is refused where that of one of its examples is, and only there, in words about the op."""
    errors: list[Exception | None] = []
    for call in (one, batch):
        try:
            call()
        except Exception as error:
            errors.append(error)
        else:
            errors.append(None)
    texts = ["accepted" if e is None else "refused" for e in errors]
    assert texts[0] == texts[1], f"one example is {texts[0]}, but a batch of them is {texts[1]}, with {about}"
    for e in errors:
        assert e is None or op in str(e), f"{type(e).__name__} says nothing of {op}, with {about}: {e}"


def check(name: str, when: Callable[[Any], object] = lambda _: True) -> Callable[[M], M]:
    """Mark a method as a check of that name, which an op has if `when` holds."""

    def mark(method: M) -> M:
        method.__dict__["check"] = name, when
        return method

    return mark


class Checks(Generic[S]):
    """The checks of one session's family: methods that raise AssertionError, or the framework's error, when they fail."""

    by_python = True
    """Whether the session calls the op as a function of Python's, and not as a node of a graph."""

    def __init__(self, session: S) -> None:
        self.session = session
        self.family: Family = session.family
        self.op: Op = session.family.forward
        self._draws: dict[str, tuple[Mapping[str, Array | None], Draw]] = {}
        self.moving = [x.name for x in self.op.inputs if differentiable(x)]

    def all(self) -> tuple[Check, ...]:
        """Return the checks that the op has, in the order of their definitions."""
        marked = [(m.check, key) for kind in reversed(type(self).__mro__) for key, m in vars(kind).items() if hasattr(m, "check")]
        return tuple(Check(name, getattr(self, key)) for (name, when), key in marked if when(self))

    def without_sizes(self, given: Sample) -> Sample:
        """Return a call that leaves its sizes to data."""
        return replace(given, attributes={n: v for n, v in given.attributes.items() if n not in self.op.told})

    def with_axes(self, given: Sample) -> Iterator[Sample]:
        """Yield a call with each attribute of axes at numbers of which many are outside of the operands."""
        for a in self.op.attributes:
            if a.kind is AttributeKind.AXIS or a.picks is not None:
                for axis in range(-7, 7):
                    yield replace(given, attributes={**given.attributes, a.name: axis if a.picks is None else [axis]})

    def examples(self, prefer: Sequence[DType] = ()) -> list[Sample]:
        """Return the spec's examples as calls; see `example_sample`.

        Raises:
            Unsupported: when there is none.
        """
        if not self.family.examples:
            raise Unsupported("the spec has no example to check this on")
        return [example_sample(self.op, e, prefer) for e in self.family.examples]

    def sample(self, seed: int = 0, times: int = 1) -> Sample:
        """Return a call with random numbers shaped like an example, its axes `times` as long where the op allows that.

        The example is the first with elements; if none has any, its empty axes get some where the op allows that.

        Raises:
            Unsupported: when the spec has no example.
        """
        return self._sample(seed, times, self.examples((DType.FLOAT64,)))

    def differentiated_sample(self, seed: int = 0, times: int = 1) -> Sample:
        """Return such a call that has a gradient: its element types are floating, those that attributes choose as well.

        Raises:
            Unsupported: when no example gives an operand that has a gradient.
        """
        examples = [_in_floating_types(self.op, e) for e in self.examples(FLOATING) if set(self.moving) & e.given.keys()]
        if not examples:
            raise Unsupported("no example of the spec gives an operand that has a gradient")
        return self._sample(seed, times, examples)

    def _sample(self, seed: int, times: int, examples: Sequence[Sample]) -> Sample:
        given = next((e for e in examples if all(a.size for a in e.given.values())), examples[0])

        def drawn(like: Mapping[str, Array | None], draw: Draw, seed: int) -> Sample:
            items = enumerate(self.op.inputs)
            return replace(given, arrays={x.name: randomised(x, like[x.name], [seed, i], draw) for i, x in items})

        key = repr((times, given.attributes, {n: (a.shape, a.dtype) for n, a in given.given.items()}))
        if key not in self._draws:
            sizes = [like for like in _sizes(given, times) if self._fits(like, given)]
            fitting = (
                (like, draw) for like in sizes for draw in DRAWS if all(self._has_values(drawn(like, draw, s)) for s in SEEDS)
            )
            self._draws[key] = next(fitting, (sizes[0], DRAWS[0]))
        return drawn(*self._draws[key], seed)

    def _fits(self, like: Mapping[str, Array | None], given: Sample) -> bool:
        """Whether the op takes operands of these sizes, among which is always the example itself."""
        try:
            infer(self.op, shapes(like), given.attributes)
        except ShapeError:
            return like is given.arrays
        return True

    def _has_values(self, given: Sample) -> bool:
        """Whether the op takes a call, and gives no NaN, which some of the frameworks' own tests take for a difference."""
        import numpy as np

        try:
            found = self.session.call(self.op.name, given.arrays, given.attributes)
        except OpError:
            return False
        return not any(np.isnan(y).any() for y in found.values() if y.dtype.kind == "f")

    @check("one axis", lists_axes)
    def one_axis(self) -> None:
        """A number where axes are listed is a list of this one."""
        for axis, attributes, given in self.of_one_axis():
            expected = self.session.call(self.op.name, given.given, {**given.attributes, attributes: [axis]})
            found = self.session.call(self.op.name, given.given, {**given.attributes, attributes: axis})
            assert_identical(list(found.values()), list(expected.values()), f"{attributes}={axis}")

    def of_one_axis(self) -> Iterator[tuple[int, str, Sample]]:
        """Yield an axis, the attribute that is to list it, and a call of which it is one.

        Raises:
            Unsupported: when there is no such call.
        """
        (name,) = (a.name for a in self.op.attributes if a.picks is not None)
        given = self.sample()
        fitting = []
        for axis in (0, -1):
            try:
                infer(self.op, shapes(given.arrays), {**given.attributes, name: [axis]})
                fitting.append(axis)
            except ShapeError:
                continue
        if not fitting:
            raise Unsupported("the spec's first example has no axis that may be listed alone")
        yield from ((axis, name, given) for axis in fitting)


@dataclass(frozen=True, slots=True)
class Sample:
    """The arguments of one call: arrays by input in the op's order, None for an absent one; attributes by name."""

    arrays: Mapping[str, Array | None]
    attributes: Mapping[str, Any]

    @property
    def given(self) -> dict[str, Array]:
        """The inputs that are given."""
        return {n: a for n, a in self.arrays.items() if a is not None}


def example_sample(op: Op, example: Example, prefer: Sequence[DType] = ()) -> Sample:
    """Return an example as a call: each input in the first dtype of `prefer` that it may have, else in the first of its own."""
    values = dict(example.values)
    arrays = {x.name: None if values.get(x.name) is None else as_array(x, values[x.name], prefer) for x in op.inputs}
    return Sample(arrays, {a.name: values[a.name] for a in op.attributes if a.name in values})


def as_array(operand: Operand, value: object, prefer: Sequence[DType]) -> Array:
    """Return a value of a spec as an array of an operand's."""
    dtypes = candidates(operand.type)
    return array_of(value, next((d for d in prefer if d in dtypes), dtypes[0]))


def array_of(value: object, dtype: DType) -> Array:
    """Return a value of a spec as an array of a dtype."""
    import numpy as np

    return np.asarray(value).astype(numpy_dtype(dtype))


def shapes(arrays: Mapping[str, Array | None]) -> dict[str, tuple[int, ...] | None]:
    """Return the shapes of inputs, as shape inference takes them."""
    return {n: None if a is None else a.shape for n, a in arrays.items()}


def tiled(array: Array | None, times: int) -> Array | None:
    """Return an array repeated along its axes, except those of size 1."""
    import numpy as np

    return None if array is None else np.tile(array, [times if s > 1 else 1 for s in array.shape])


def _filled(array: Array | None) -> Array | None:
    """Return an array with two elements along each axis that has none: zeros, if it had no elements."""
    import numpy as np

    return array if array is None or array.size else np.zeros([s or 2 for s in array.shape], array.dtype)


def _sizes(given: Sample, times: int) -> Iterator[Mapping[str, Array | None]]:
    """Yield operands in the sizes to try: with elements where the example has none, then longer, last the example's own."""
    filled = {n: _filled(a) for n, a in given.arrays.items()}
    for like in (filled, given.arrays) if any(a.size == 0 for a in given.given.values()) else (given.arrays,):
        yield {n: tiled(a, times) for n, a in like.items()}
        yield like


def _in_floating_types(op: Op, given: Sample) -> Sample:
    """Return a call with floating types for the attributes that choose types, as far as these may be floating."""
    variables = {t.name: t for t in op.types}
    chosen: dict[str, Any] = {}
    for a in op.attributes:
        dtypes = candidates(variables[a.binds]) if a.kind is AttributeKind.DTYPE and a.binds is not None else ()
        fitting = [d for d in FLOATING if d in dtypes]
        if fitting and not DType(str(given.attributes.get(a.name, a.default))).is_floating:
            chosen[a.name] = fitting[0].value
    return replace(given, attributes={**given.attributes, **chosen})


Draw: TypeAlias = "Callable[[np.random.Generator, Array], Array]"
"""Random numbers in the shape of an array."""


def _like(rng: np.random.Generator, like: Array) -> Array:
    """Return normal numbers; their magnitudes where `like` has nothing negative, such as probabilities and variances."""
    values: Array = rng.standard_normal(like.shape)
    return abs(values) if (like >= 0).all() else values


DRAWS: tuple[Draw, ...] = (
    _like,
    lambda rng, like: rng.uniform(0.1, 0.9, like.shape),
    lambda rng, like: rng.uniform(1.1, 1.9, like.shape),
    lambda rng, like: like.copy(),
)
"""What samples are drawn from: the first of which the op has values. Logarithms take the second, acosh the third.

Where it has values of none of them, a sample has those of the example.
"""

SEEDS = range(3)
"""Seeds of samples, at all of which an op has values: a few normal numbers may lie where it has some by chance."""


def randomised(operand: Operand, like: Array | None, seed: Sequence[int], draw: Draw = _like) -> Array | None:
    """Return random float64 numbers in the shape of `like`; of an operand without float64, `like` itself."""
    import numpy as np

    if like is None or DType.FLOAT64 not in candidates(operand.type):
        return like
    return np.asarray(draw(np.random.default_rng(seed), like))


def misshapen(op: Op, given: Sample) -> Iterator[tuple[str, Sample, str]]:
    """Yield calls with an input that the op refuses when it has two axes more: its name, the call, and the op's message."""
    import numpy as np

    for name, array in given.given.items():
        arrays = {**given.arrays, name: np.ones((7, *array.shape, 7), array.dtype)}
        try:
            infer(op, shapes(arrays), given.attributes)
        except ShapeError as error:
            yield name, replace(given, arrays=arrays), str(error)


def assert_identical(found: Sequence[Array], expected: Sequence[Array], what: str) -> None:
    """Assert that two ways to run the same kernels gave the same bits."""
    assert len(found) == len(expected), f"{what}: {len(found)} results instead of {len(expected)}"
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: {a.dtype} {a.shape} instead of {b.dtype} {b.shape}"
        assert _same_bits(a, b), f"{what}: {a} instead of {b}"


def _same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one type are the same but for the bits of NaN, of which nobody says what they are."""
    if a.tobytes() == b.tobytes():
        return True
    lost = a != a
    return bool((lost == (b != b)).all()) and a[~lost].tobytes() == b[~lost].tobytes()


def rounding_error(array: Array, rounds: int = 16) -> float:
    """Return so many roundings of an array's dtype, relative to its largest finite number."""
    import ml_dtypes
    import numpy as np

    if array.dtype.kind in "iub" or "int" in array.dtype.name:
        return 0.0
    wide = np.abs(array.astype(np.float64))
    return float(rounds * float(ml_dtypes.finfo(array.dtype).eps) * max(1.0, wide[np.isfinite(wide)].max(initial=0.0)))


def assert_alike(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Assert that two ways to compute the same outputs agree but for a few roundings."""
    import numpy as np

    for name, value in expected.items():
        assert found[name].dtype == value.dtype, f"{name}: {found[name].dtype} is not {value.dtype}"
        a, b = (v.astype(np.float64) for v in (found[name], value))
        np.testing.assert_allclose(a, b, rtol=0, atol=rounding_error(value), err_msg=name)
