"""What `opc.load` returns for a spec of several ranks: one function, which chooses among its ops by the axes of the operands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opc.api import LoadedOp


class RankedOp:
    """The ops of a spec of several ranks as one function, which calls the one whose number of axes the operands have.

    `members` are the ops by name, the least rank first; each is an attribute too: `max_pool.max_pool2d`. They take the same
    arguments, and a call is one of the member that is chosen, with its results, gradients and errors.
    """

    def __init__(
        self, name: str, members: Mapping[int, LoadedOp], axes: Mapping[int, Sequence[int | None]], again: tuple[Any, ...]
    ) -> None:
        """Join the loaded ops of each rank; `axes` says for each how many axes its inputs have, None for any number.

        `again` is a function with its arguments that loads the same anew, for pickles.
        """
        self.__name__ = self.__qualname__ = name
        self.members: Mapping[str, LoadedOp] = MappingProxyType({op.__name__: op for op in members.values()})
        self._again = again
        greatest = members[max(members)]
        # Inputs come first; a word of Python is another name there than in messages.
        self._parameters = tuple(inspect.signature(greatest).parameters)
        self._inputs = dict(zip(self._parameters, greatest.inputs))
        self._ranks = [
            (rank, op, {n: k for n, k in zip(op.inputs, axes[rank], strict=True) if k is not None})
            for rank, op in members.items()
        ]
        ops = _listed([*self.members])
        self.__doc__ = f"{name}, by the number of axes: {ops}.\n\nOf {greatest.__name__}:\n\n{greatest.__doc__}"
        self.__wrapped__ = greatest

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op of the operands' rank.

        Raises:
            ValueError: when there is none, or the operands do not tell which is meant.
        """
        given = self._given(args, kwargs)
        counts = {name: _axes(given[p]) for p, name in self._inputs.items() if given.get(p) is not None}
        fitting = [(rank, op) for rank, op, axes in self._ranks if all(axes.get(n, k) == k for n, k in counts.items())]
        if len(fitting) > 1:
            lengths = [len(value) for p, value in given.items() if p not in self._inputs and isinstance(value, list | tuple)]
            fitting = [(rank, op) for rank, op in fitting if rank in lengths] or fitting
        if len(fitting) == 1:
            return fitting[0][1](*args, **kwargs)
        if not fitting:
            raise ValueError(f"{self.__name__}: {self._unfit(counts)}")
        # What is missing or too much, the op itself says.
        inspect.signature(fitting[-1][1]).bind(*args, **kwargs)
        raise ValueError(f"{self.__name__}: the operands do not tell the rank: call one of {', '.join(self.members)}")

    def _given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by the names of their parameters."""
        return {**dict(zip(self._parameters, args)), **kwargs}

    def _unfit(self, counts: Mapping[str, int]) -> str:
        """Return why no op takes operands of so many axes."""
        for name, count in counts.items():
            taken = {op.__name__: axes[name] for _, op, axes in self._ranks if name in axes}
            if taken and count not in taken.values():
                ops = ", ".join(f"{op} takes {k}" for op, k in taken.items())
                return f"{name} has {_in_words(count)}: {ops}"
        told = ", ".join(f"{name} of {_in_words(count)}" for name, count in counts.items())
        return f"no op of {_listed([*self.members])} takes {told}"

    def __getattr__(self, name: str) -> LoadedOp:
        """Return a member by its name."""
        if not name.startswith("_") and name in self.members:
            return self.members[name]
        hint = f"; its ops are {_listed([*self.members])}" if not name.startswith("_") else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")

    def __dir__(self) -> Iterator[str]:
        yield from (*super().__dir__(), *self.members)

    def __repr__(self) -> str:
        return f"<op {self.__name__} of {_listed([*self.members])}>"

    def __reduce__(self) -> tuple[Callable[..., RankedOp], tuple[Any, ...]]:
        load, *arguments = self._again
        return load, tuple(arguments)


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
