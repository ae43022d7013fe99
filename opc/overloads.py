"""What `opc.load` returns for a spec of several ranks or counts: one function, which chooses among its ops by the operands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opc.names import spelled

if TYPE_CHECKING:
    from opc.api import LoadedOp
    from opc.spec.files import Numbers
    from opc.spec.instantiate import Operand


class OverloadedOp:
    """The ops of one spec as one function, which calls the one that fits the operands.

    `members` are the ops by name, the least number first; each is an attribute too: `max_pool.max_pool2d`. A call is one of the
    member that is chosen, with its results, gradients and errors.
    """

    def __init__(self, name: str, members: Sequence[LoadedOp | RankedOp], by: str, again: tuple[Any, ...]) -> None:
        """Join loaded ops, the greatest last; `by` says what chooses, and `again` is a function with its arguments that loads the
        same anew, for pickles."""
        self.__name__ = self.__qualname__ = name
        self.members: Mapping[str, LoadedOp | RankedOp] = MappingProxyType({op.__name__: op for op in members})
        self._again = again
        greatest = members[-1]
        self.__doc__ = f"{name}, by {by}: {_listed([*self.members])}.\n\nOf {greatest.__name__}:\n\n{greatest.__doc__}"

    def __getattr__(self, name: str) -> LoadedOp | RankedOp:
        """Return a member by its name."""
        if not name.startswith("_") and name in self.members:
            return self.members[name]
        hint = f"; its ops are {_listed([*self.members])}" if not name.startswith("_") else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")

    def __dir__(self) -> Iterator[str]:
        yield from (*super().__dir__(), *self.members)

    def __repr__(self) -> str:
        return f"<op {self.__name__} of {_listed([*self.members])}>"

    def __reduce__(self) -> tuple[Callable[..., OverloadedOp], tuple[Any, ...]]:
        load, *arguments = self._again
        return load, tuple(arguments)


class RankedOp(OverloadedOp):
    """The ops of a spec of several ranks as one function, which calls the one whose number of axes the operands have.

    They take the same arguments. Where several take operands of these axes, the lengths of lists choose.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[Numbers, LoadedOp],
        inputs: Mapping[Numbers, Sequence[Operand]],
        lengths: Mapping[Numbers, Mapping[str, int]],
        again: tuple[Any, ...],
    ) -> None:
        """Join the loaded ops of each rank, of which `inputs` says how many axes its operands have, `lengths` how many elements
        its lists."""
        super().__init__(name, [*members.values()], "the number of axes", again)
        greatest = members[max(members)]
        # Inputs come first; a word of Python is another name there than in messages.
        self._parameters = tuple(inspect.signature(greatest).parameters)
        self._inputs = dict(zip(self._parameters, greatest.inputs))
        self._ranks = []
        for ranks, op in members.items():
            given = (o.axes for o in inputs[ranks] for _ in range(ranks[-1] if o.several else 1))
            axes = {n: count for n, count in zip(op.inputs, given, strict=True) if count is not None}
            self._ranks.append((lengths[ranks], op, axes))
        self.__wrapped__ = greatest

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op of the operands' rank.

        Raises:
            TypeError: when a name is spelled otherwise in Python.
            ValueError: when there is none, or the operands do not tell which is meant.
        """
        _refuse_spelling(self.__name__, self._parameters, kwargs)
        given = {**dict(zip(self._parameters, args)), **kwargs}
        counts = {name: _axes(given[p]) for p, name in self._inputs.items() if given.get(p) is not None}
        fitting = [(lists, op) for lists, op, axes in self._ranks if all(axes.get(n, k) == k for n, k in counts.items())]
        if len(fitting) > 1:
            told = {spelled(name): len(value) for name, value in given.items() if isinstance(value, list | tuple)}
            chosen = [(lists, op) for lists, op in fitting if all(told.get(n, k) == k for n, k in lists.items())]
            fitting = chosen or fitting
        if len(fitting) == 1:
            return fitting[0][1](*args, **kwargs)
        if not fitting:
            raise ValueError(f"{self.__name__}: {self._unfit(counts)}")
        # What is missing or too much, the op itself says.
        inspect.signature(fitting[-1][1]).bind(*args, **kwargs)
        raise ValueError(f"{self.__name__}: the operands do not tell the rank: call one of {', '.join(self.members)}")

    def _unfit(self, counts: Mapping[str, int]) -> str:
        """Return why no op takes operands of so many axes."""
        for name, count in counts.items():
            taken = {op.__name__: axes[name] for _, op, axes in self._ranks if name in axes}
            if taken and count not in taken.values():
                ops = ", ".join(f"{op} takes {k}" for op, k in taken.items())
                return f"{name} has {_in_words(count)}: {ops}"
        told = ", ".join(f"{name} of {_in_words(count)}" for name, count in counts.items())
        return f"no op of {_listed([*self.members])} takes {told}"


class VariadicOp(OverloadedOp):
    """The ops of a spec of several counts as one function, which calls the one that has as many operands as a list holds.

    What a member takes one by one, `concat2(x0, x1)`, is one list here: `concat([x0, x1])`.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[int, LoadedOp | RankedOp],
        inputs: Mapping[int, Sequence[Operand]],
        again: tuple[Any, ...],
    ) -> None:
        """Join the loaded ops of each count, of which `inputs` says which operands are several."""
        super().__init__(name, [*members.values()], "the number of operands", again)
        self._counts = dict(members)
        greatest = max(members)
        own = inspect.signature(members[greatest]).parameters
        taken = iter(own.values())
        parameters: list[inspect.Parameter] = []
        for operand in inputs[greatest]:
            parameter = next(taken)
            if operand.several:
                parameter = parameter.replace(name=parameter.name.removesuffix("0"), annotation=inspect.Parameter.empty)
                for _ in range(greatest - 1):
                    next(taken)
            parameters.append(parameter)
        self._several = tuple(p.name for p, operand in zip(parameters, inputs[greatest]) if operand.several)
        self._inputs = {p.name for p in parameters}
        self.__signature__ = inspect.Signature([*parameters, *taken])
        self._parameters = tuple(self.__signature__.parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op that has so many operands.

        Raises:
            TypeError: when what stands for several operands is no list, or a name is spelled otherwise in Python.
            ValueError: when there is no op of so many, or nothing tells how many there are.
        """
        names = self._parameters
        _refuse_spelling(self.__name__, names, kwargs)
        given = {**dict(zip(names, args)), **kwargs}
        lists = {name: given[name] for name in self._several if given.get(name) is not None}
        wrong = next((name for name, value in lists.items() if not isinstance(value, list | tuple)), None)
        if wrong is not None:
            raise TypeError(f"{self.__name__}: {wrong} is a list of operands, not {type(lists[wrong]).__name__}")
        op = self._chosen(lists, given)
        positional = [v for name, value in zip(names, args) for v in (value if name in lists else (value,))]
        named = {f"{name}{i}": v for name, value in kwargs.items() if name in lists for i, v in enumerate(value)}
        named |= {name: value for name, value in kwargs.items() if name not in lists}
        return op(*positional, *args[len(names) :], **named)

    def _chosen(self, lists: Mapping[str, Sequence[Any]], given: Mapping[str, Any]) -> LoadedOp | RankedOp:
        """Return the op that has as many operands as lists of them hold; without such, as another list has elements."""
        lengths = {len(value) for value in lists.values()}
        if len(lengths) > 1:
            told = ", ".join(f"{name} has {len(value)}" for name, value in lists.items())
            raise ValueError(f"{self.__name__}: {told}, but there are as many of each")
        lengths = lengths or _lengths(value for name, value in given.items() if name not in self._inputs)
        fitting = [op for count, op in self._counts.items() if count in lengths]
        if len(fitting) == 1:
            return fitting[0]
        ops = ", ".join(f"{op.__name__} has {count}" for count, op in self._counts.items())
        if lists:
            raise ValueError(f"{self.__name__}: {next(iter(lists))} has {lengths.pop()}: {ops}")
        missing = [name for name in self._several if name not in given]
        if missing:
            raise TypeError(f"{self.__name__}() missing a required argument: '{missing[0]}'")
        raise ValueError(f"{self.__name__}: nothing tells how many there are: call one of {', '.join(self.members)}")


def _refuse_spelling(op: str, parameters: Sequence[str], given: Iterable[str]) -> None:
    """Raise TypeError for a name as the spec has it that is spelled otherwise in Python."""
    for name in given:
        if name not in parameters and (own := next((p for p in parameters if spelled(p) == name), None)) is not None:
            raise TypeError(f"{op}: {name} is called {own} in Python")


def _lengths(values: Iterable[Any]) -> set[int]:
    """Return the lengths of the lists among values."""
    return {len(value) for value in values if isinstance(value, list | tuple)}


def _axes(value: Any) -> int:
    """Return how many axes a value has that is given for an operand: a tensor, or numbers in lists."""
    count = getattr(value, "ndim", None)
    if isinstance(count, int):
        return count
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape)
    import numpy as np

    return np.ndim(value)


def _in_words(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
