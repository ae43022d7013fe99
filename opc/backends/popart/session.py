"""A built library in live PopART, as the proof calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opc.backends.base import Session, Unsupported
from opc.backends.derived import derivation, differentiable, required_outputs
from opc.backends.poplar.carried import reached
from opc.backends.poplar.library import library_path
from opc.backends.poplar.models import Model, load_once, only_reached, refusal, refusals
from opc.backends.poplar.values import contiguous, declared, held_arrays, held_attributes
from opc.backends.sessions import is_floating
from opc.ir.op import Family, Role

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs


class PopartSession(Session):
    """Calls ops as nodes of models: forward ones in inference sessions, gradients in training sessions."""

    def __init__(self, family: Family, package: Path) -> None:
        """Load the library.

        Raises:
            ImportError: when it is not built, or PopART is missing.
        """
        super().__init__(family, package)
        self.reached = reached(family)
        load_once(family.name, package / library_path(family))

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self.ops[op]
        if described not in self.reached:
            raise only_reached(described)
        arrays = held_arrays(described, inputs, attributes)
        values = held_attributes(described, attributes)
        wanted = required_outputs(described, arrays, attributes, only)
        try:
            model = Model()
            tensors = {name: model.input(array) for name, array in arrays.items()}
            made = model.node(described, tensors, values, wanted)
            found = model.run(list(made.values()))
        except refusals() as error:
            raise refusal(error) from error
        results = declared(described, inputs, attributes, {name: found[tensor] for name, tensor in made.items()})
        return results if only is None else {name: results[name] for name in only}

    def gradient(self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array]) -> dict[str, Array]:
        """Return the gradients of the floating inputs through a training session, by input name."""
        op = self.family.forward
        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        arrays = held_arrays(op, inputs, attributes)
        model = Model()
        tensors = {name: model.input(array) for name, array in arrays.items()}
        made = model.node(op, tensors, held_attributes(op, attributes), self._made(arrays, attributes, cotangents))
        moving = self._moving(arrays)
        of = [n for n in moving if n in derivation(self.family.backward).outputs]
        pairs = [(made[n], model.input(contiguous(c))) for n, c in cotangents.items()]
        found = dict(zip(of, _gradients(model, pairs, [tensors[n] for n in of]), strict=True))
        return {n: found.get(n, np.zeros_like(arrays[n])) for n in moving}

    def second_gradient(
        self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array], second: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) over x, for the inputs and (as `d_<output>`) the cotangents.

        The gradient is a node of the model, which PopART's autodiff differentiates as it does the op itself.
        """
        op, backward = self.family.forward, self.family.backward
        if backward is None or self.family.backward_backward is None:
            raise Unsupported("the spec says gradient: none")
        arrays, values = held_arrays(op, inputs, attributes), held_attributes(op, attributes)
        model = Model()
        tensors = {name: model.input(array) for name, array in arrays.items()}
        seeds = {name: model.input(contiguous(c)) for name, c in cotangents.items()}
        roles = derivation(backward).inputs
        wanted = self._made(arrays, attributes, cotangents)
        made = model.node(op, tensors, values, wanted) if any(r is Role.OUTPUT for r, _ in roles) else {}
        of = {Role.INPUT: tensors, Role.OUTPUT: made, Role.COTANGENT: seeds}
        given = {x.name: of[role].get(name) for x, (role, name) in zip(backward.inputs, roles, strict=True)}
        names = dict(zip(derivation(backward).outputs, (o.name for o in backward.outputs), strict=True))
        first = model.node(backward, given, values, [names[n] for n in second])
        reached_inputs, reached_seeds = self._reached_twice()
        moving = self._moving(arrays)
        targets = {n: tensors[n] for n in moving if n in reached_inputs}
        targets |= {f"d_{n}": t for n, t in seeds.items() if n in reached_seeds}
        pairs = [(first[names[n]], model.input(contiguous(d))) for n, d in second.items()]
        found = dict(zip(targets, _gradients(model, pairs, list(targets.values())), strict=True))
        zeros = {n: arrays[n] for n in moving} | {f"d_{n}": c for n, c in cotangents.items()}
        return {n: found.get(n, np.zeros_like(like)) for n, like in zeros.items()}

    def _made(self, arrays: Mapping[str, Array], attributes: Attributes, cotangents: Mapping[str, Array]) -> list[str]:
        """Return the outputs of a model to differentiate: those with a cotangent, and what never has one, as positions."""
        roles = () if self.family.backward is None else derivation(self.family.backward).inputs
        seeds = {name for role, name in roles if role is Role.COTANGENT}
        return [n for n in required_outputs(self.family.forward, arrays, attributes, None) if n in cotangents or n not in seeds]

    def _moving(self, arrays: Mapping[str, Array]) -> list[str]:
        """Return the inputs that are given and have a gradient."""
        return [
            x.name for x in self.family.forward.inputs if differentiable(x) and x.name in arrays and is_floating(arrays[x.name])
        ]

    def _reached_twice(self) -> tuple[set[str], set[str]]:
        """Return the inputs and the outputs' cotangents that a second gradient reaches."""
        backward, twice = self.family.backward, self.family.backward_backward
        if backward is None or twice is None:
            return set(), set()
        roles = dict(zip((x.name for x in backward.inputs), derivation(backward).inputs, strict=True))
        found = [roles[name] for name in derivation(twice).outputs]
        inputs = {name for role, name in found if role is Role.INPUT}
        if any(role is Role.OUTPUT for role, _ in found):
            inputs |= set(derivation(backward).outputs)
        return inputs, {name for role, name in found if role is Role.COTANGENT}


def _gradients(model: Model, pairs: Sequence[tuple[str, str]], of: Sequence[str]) -> list[Array]:
    """Return the gradients of a model by some tensors.

    Raises:
        OpError: when PopART refuses the model.
        Unsupported: when a tile has no room for it.
    """
    try:
        return model.gradients(pairs, of) if of else []
    except refusals() as error:
        raise refusal(error) from error
