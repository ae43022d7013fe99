"""What is left of a spec when the parts with mistakes of form are left out, so that the mistakes in the rest are found too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from opc.spec.model import GradientModel, SpecModel

_INSTEAD: dict[str, Any] = {"op": "unnamed", "domain": "unnamed", "version": 1, "doc": ""}
"""What stands for a required key whose value is not known and that nothing else in a spec refers to."""
_DECLARING = ("types", "inputs", "attributes", "outputs", "shape")
"""The sections that declare names, each by itself."""
_MOST_ROUNDS = 20


def what_is_left(data: dict[str, Any], unread: set[str]) -> SpecModel | None:
    """Return the model of a spec's data without the parts that have mistakes; None where too little is left.

    `unread` is extended by the names that the parts left out declare.
    """
    rest = {**_INSTEAD, **{k: dict(v) if isinstance(v, dict) else v for k, v in data.items()}}
    for _ in range(_MOST_ROUNDS):
        try:
            return SpecModel.model_validate(rest)
        except ValidationError as error:
            for path in {tuple(d["loc"]) for d in error.errors(include_url=False)}:
                _leave_out(rest, path, unread)
            if not {"inputs", "outputs"} <= rest.keys():
                return None
    return None


def _leave_out(rest: dict[str, Any], path: tuple[int | str, ...], unread: set[str]) -> None:
    key = str(path[0])
    if key in _DECLARING and len(path) > 1 and isinstance(rest.get(key), dict):
        unread.add(str(path[1]).removesuffix("?"))
        rest[key].pop(path[1], None)
        return
    unread.update(_declared(rest.pop(key, None)))
    if key in _INSTEAD:
        rest[key] = _INSTEAD[key]


def _declared(value: Any) -> Iterator[str]:
    """Yield the names that a section under a wrong key, or with a wrong form, may have been meant to declare."""
    if isinstance(value, dict):
        yield from (str(name).removesuffix("?") for name in value)
    elif isinstance(value, list):
        for item in value:
            yield from _declared(item) if isinstance(item, dict) else [str(item)]


def without_empty_bodies(model: SpecModel) -> SpecModel:
    """Return a spec with mistakes without bodies that hold nothing, which have been told of."""
    kernel = model.kernel if model.kernel is None or model.kernel.strip() else None
    gradient = model.gradient
    if gradient.mode == "body" and (gradient.body is None or not gradient.body.strip()):
        gradient = GradientModel(mode="none", body=None, ties="first", scatter="deterministic", surrogate=False)
    return model.model_copy(update={"kernel": kernel, "gradient": gradient})
