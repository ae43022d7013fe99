"""What running a saved model takes: the families of its ops, its inputs from .npy files, its outputs to such files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

from opc.diagnostics import Diagnostic, Diagnostics, SpecError, Told, did_you_mean
from opc.ir.dtypes import DTYPES, numpy_dtype
from opc.ir.op import Family
from opc.pipeline import load_family
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Array


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One output of a run: the file it was written to, and what is in it."""

    name: str
    path: Path
    dtype: str
    shape: tuple[int, ...]


def load_families(specs: Sequence[Path]) -> list[tuple[Family, Path]]:
    """Return the families of specs, each with its spec.

    Raises:
        SpecError: with the mistakes of all specs.
    """
    found, told = Diagnostics(), Told()
    families: list[tuple[Family, Path]] = []
    for spec in specs:
        try:
            families.append((load_family(spec), spec))
        except SpecError as error:
            found.extend(told.new(error.diagnostics))
    found.raise_errors()
    return families


def load_inputs(
    model: Path,
    expected: Mapping[str, str],
    files: Mapping[str, Path],
    load: Callable[[str, Path, Diagnostics], Array | None],
    optional: Collection[str] = (),
) -> dict[str, Array]:
    """Return the arrays of a model's inputs. `expected` describes each in words; those in `optional` need not be given.

    `load` reads the input of a name, or returns None after recording what is wrong with it.

    Raises:
        SpecError: with every input that is missing, unknown, unreadable, or of a wrong dtype or shape.
    """
    found = Diagnostics()
    listed = f"its inputs are {', '.join(expected)}" if expected else "it has no inputs"
    for name in files:
        if name not in expected:
            found.error(f"{model} has no input '{name}'", hint=did_you_mean(name, expected) or listed)
    feeds: dict[str, Array] = {}
    for name, described in expected.items():
        if name in files:
            array = load(name, files[name], found)
            feeds |= {} if array is None else {name: array}
        elif name not in optional:
            found.error(f"the input '{name}' is missing", hint=f"give it as --input {name}=FILE.npy: {described}")
    found.raise_errors()
    return feeds


def load_array(name: str, file: Path, dtype: str, found: Diagnostics) -> Array | None:
    """Return the input `name` of a model from a file, or None after recording what is wrong with it."""
    import numpy as np

    try:
        with file.open("rb") as stream:
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        found.error(f"can't read {file} for the input '{name}': {error.strerror or error}")
        return None
    except (ValueError, TypeError, ArithmeticError, MemoryError, SyntaxError, TokenError) as error:  # a header is read as Python
        found.error(f"{file} for the input '{name}' is no .npy file of numbers: {error}")
        return None
    known = next((d for d in DTYPES if d.value == dtype and d.row.numpy != "numpy"), None)
    if known is not None and array.dtype == f"V{known.itemsize}":
        array = array.view(numpy_dtype(known))  # NumPy writes a type it does not know as bytes.
    if array.dtype.name != dtype:
        found.error(f"the input '{name}' must be {dtype}, but {file} holds {array.dtype.name}")
        return None
    return array


def save_array(name: str, array: Array, folder: Path, names: Collection[str]) -> OutputFile:
    """Write one of the outputs `names` to a file named like it, without what could lead out of the folder.

    Raises:
        SpecError: when the file can't be written.
    """
    import numpy as np

    def file_name(output: str) -> str:
        return re.sub(r"[^\w.-]", "_", output).lstrip(".") or "_"

    twins = [n for n in names if file_name(n) == file_name(name)]
    suffix = f"_{twins.index(name)}" if len(twins) > 1 else ""
    place = folder / f"{file_name(name)}{suffix}.npy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(place, array)
    except OSError as error:
        raise SpecError([Diagnostic(f"can't write {place}: {error.strerror or error}")]) from error
    return OutputFile(name, place, array.dtype.name, array.shape)
