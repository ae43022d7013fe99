"""The C header alone says how each function is called: its operands in order, and what members of the attributes hold."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opc.emit import abi
from opc.emit.kernel.files import kernel_files
from opc.ir.dtypes import DTYPES
from opc.ir.op import AttributeKind
from opc.pipeline import load_family
from tests.emit.kernel_library import INCLUDE

SPECS = Path(__file__).parents[2] / "specs"


@pytest.mark.parametrize(
    "spec", ["leaky_relu", "layer_norm", "embedding_bag", "max_pool2d", "onnx/cast", "onnx/pad2d", "onnx/dft"]
)
def test_headers_say_how_functions_are_called(spec: str, tmp_path: Path) -> None:
    family = load_family(SPECS / f"{spec}.yaml")
    text = kernel_files(family)[abi.header_path(family)]
    for op in family.ops:
        (about,) = re.findall(rf"/\* ((?:(?!\*/).)*?)\*/\nOPC_EXPORT\nint32_t {abi.function_name(op)}\(", text, re.DOTALL)
        about = about.rpartition("/* ")[2]
        for kind, operands in (("inputs", op.inputs), ("outputs", op.outputs)):
            told = re.findall(rf"^ \* {kind}\[(\d+)\] (\w+): (.*)$", about, re.MULTILINE)
            assert [(int(i), name, ", or NULL" in shape) for i, name, shape in told] == [
                (i, o.name, o.optional) for i, o in enumerate(operands)
            ]
        for t in op.types:
            (dtypes,) = re.findall(rf"^ \* {t.name} is ((?:.|\n \*   )*)", about, re.MULTILINE)
            assert re.findall(r"\w+", dtypes.replace(" or ", " ")) == [d.value for d in t.dtypes]
    struct = " ".join(text[text.index("typedef struct") : text.index("} opc_")].split()).replace(" * ", " ")
    for a in family.forward.attributes:
        if a.kind is AttributeKind.STR:
            assert ", ".join(f"{i} for {value}" for i, value in enumerate(a.values)) in struct
        if a.kind is AttributeKind.DTYPE:
            bound = next(t for t in family.forward.types if t.name == a.binds)
            assert ", ".join(f"{DTYPES.index(d)} for {d}" for d in bound.dtypes) in struct
    (tmp_path / "header.h").write_text(text)
    (tmp_path / "a.c").write_text('#include "header.h"\n')
    flags = ["-std=c89", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
    subprocess.run(["gcc", *flags, tmp_path / "a.c"], check=True)
