"""Runs every statement of an op as a codelet on the emulated Poplar, and compares what comes out with the oracle."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv, infer, infer_types
from opc.emit.poplar.codelets import codelets_source
from opc.emit.poplar.dtypes import TYPES, carried, stored
from opc.emit.poplar.placing import codelet_text
from opc.ir.affine import Dim, GroupSize
from opc.ir.dtypes import Acc, DType, TypeVar, numpy_dtype, resolve
from opc.ir.op import AttributeKind, Op
from opc.lower.lower import SpecialisedProgram, lower
from opc.lower.poplar.codelets import CodeletStage, codelet_stage
from opc.lower.specialise import Equal
from opc.records import dataclass, replace
from opc.testing.cases.calls import Case
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.oracle.tolerance import compare

ROOT = Path(__file__).parents[3]
EMULATION = ROOT / "runtime" / "emulation" / "poplar"
FLAGS = [
    "-std=c++14",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-init-list-lifetime",
    "-g1",
    "-fPIC",
    "-shared",
    "-DPOPLAR_EMULATION_LIBRARIES",
]


@dataclass(frozen=True, slots=True)
class Names:
    """What the functions of the harness call things."""

    op: Op

    @property
    def taken(self) -> frozenset[str]:
        return frozenset(("c", "r"))

    def tensor(self, operand: str) -> str:
        return f"t_{operand}"

    def shape(self, operand: str) -> str:
        return f'c.shape("{operand}")'

    def size(self, symbol: Dim | GroupSize) -> str:
        return f'c.size("{symbol}")'

    def group(self, name: str, of: str | None) -> str:
        return f'c.group("{name}@{of or ""}")'

    def attribute(self, name: str, element: int) -> str:
        kind = self.op.attribute(name).kind
        word = {AttributeKind.FLOAT: "real", AttributeKind.BOOL: "flag", AttributeKind.STR: "text"}.get(kind, "integer")
        return f'c.{word}("{name}.{element}")'

    def present(self, operand: str) -> str:
        return f"t_{operand}.valid()"

    def type(self, variable: TypeVar) -> str:
        return f'c.type("{variable.name}")'


@dataclass(frozen=True, slots=True, eq=False)
class Harness:
    """The library of some ops: a function for each case of the attributes of each op."""

    functions: Mapping[str, int]
    library: ctypes.CDLL
    codelets: Path


def stages_of(op: Op) -> list[list[CodeletStage]]:
    """Return a codelet for each statement, case by case."""
    found = []
    for n, v in enumerate(lower(op)):
        found.append([codelet_stage(v.case.op, s, f"{op.name}_{n}_{s.target}") for s in v.case.op.body])
    return found


def source(ops: Sequence[Op]) -> str:
    """Return the functions that run all statements of ops."""
    lines = ['#include "harness.h"', ""]
    for op in ops:
        for n, (v, stages) in enumerate(zip(lower(op), stages_of(op), strict=True)):
            lines += _function(op, v.case.op, f"{op.name}_{n}", stages)
    every = ", ".join(functions_of(ops))
    lines.append('extern "C" int run(int which, const char *text, const char *codelets, const void *const *in, void *const *out,')
    lines.append("                   char *message) {")
    lines.append(f"  void (*const all[])(harness::run &, const harness::call &) = {{{every}}};")
    lines += ["  return harness::run_call(all[which], text, codelets, in, out, message);", "}", ""]
    return "\n".join(lines)


def functions_of(ops: Sequence[Op]) -> dict[str, int]:
    """Return the numbers of the functions of ops."""
    names = [f"{op.name}_{n}" for op in ops for n in range(len(lower(op)))]
    return {name: n for n, name in enumerate(names)}


def _function(op: Op, case: Op, name: str, stages: list[CodeletStage]) -> Iterator[str]:
    yield f"static void {name}(harness::run &r, const harness::call &c) {{"
    yield from ("  poplar::Graph &graph = r.graph;", "  poplar::program::Sequence &prog = r.prog;")
    yield "  const poplar::DebugContext &debug = r.debug;"
    for i in op.inputs:
        given = f'c.flag("{i.name}")' if i.optional else "true"
        yield f'  const poplar::Tensor t_{i.name} = r.input("{i.name}", {_type(i.type)}, {given});'
        yield f"  static_cast<void>(t_{i.name});"
    yield from (f"  poplar::Tensor t_{s.target};" for s in case.body)
    for s in stages:
        yield from codelet_text(s, Names(case))
    yield from (f'  r.output("{o.name}", t_{o.name});' for o in op.outputs)
    yield "}"


def _type(t: Any) -> str:
    known = stored(t)
    if isinstance(t, Acc) and known is None:
        return f'opc::ipu::accumulated(c.type("{t.of}"))'
    return f'c.type("{t.name}")' if known is None else f"poplar::{known.constant}"


def codelets_of(ops: Sequence[Op]) -> str:
    """Return the source of the codelets of ops."""
    return codelets_source(ops[0].name, [s for op in ops for stages in stages_of(op) for s in stages])


def build(ops: Sequence[Op], folder: Path, extra: tuple[str, ...] = ("-O0",)) -> Harness:
    """Write and compile what runs some ops; headers are compiled once for all folders beside this one."""
    folder.mkdir(parents=True, exist_ok=True)
    name = ops[0].name
    codelets, host, library = folder / f"{name}_codelets.cpp", folder / f"{name}_host.cpp", folder / f"{name}.so"
    texts = {codelets: codelets_of(ops), host: source(ops)}
    for path, text in texts.items():
        path.write_text(text)
    runtime, emulation = f"-I{ROOT / 'runtime' / 'include'}", f"-I{EMULATION / 'include'}"
    shared = folder.parent / "shared"
    if not shared.exists():
        _build_shared(shared, [*FLAGS, *extra, runtime, emulation])
    includes = [f"-I{shared}", f"-I{Path(__file__).parent}", runtime, emulation]
    _compile([*FLAGS, *extra, *includes, str(host), "-o", str(library), str(shared / "libemulation.so"), f"-Wl,-rpath,{shared}"])
    compiled = folder / f"{name}.gp"
    subprocess.run([str(EMULATION / "bin" / "popc"), "-O1", str(codelets), "-o", str(compiled), runtime], check=True, cwd=ROOT)
    return Harness(functions_of(ops), ctypes.CDLL(str(library)), compiled)


def _build_shared(folder: Path, flags: list[str]) -> None:
    """Compile what all ops use: the emulation as a library, and the headers of the harness."""
    folder.mkdir()
    sources = [str(EMULATION / "src" / f"{name}.cpp") for name in ("poplar", "popops", "poputil")]
    _compile([*flags, *sources, "-o", str(folder / "libemulation.so"), "-ldl"])
    _compile([*flags, "-x", "c++-header", str(Path(__file__).parent / "harness.h"), "-o", str(folder / "harness.h.gch")])


def _compile(arguments: list[str]) -> None:
    done = subprocess.run(["g++", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def env_of(op: Op, case: Case) -> ShapeEnv:
    """Return what a call binds."""
    shapes = {name: None if a is None else a.data.shape for name, a in case.inputs.items()}
    return infer(op, shapes, case.attributes)


def binding_of(op: Op, case: Case) -> dict[str, DType]:
    """Return the dtypes of a call's type variables."""
    told = infer_types(op, {n: None if a is None else DType(a.data.dtype.name) for n, a in case.inputs.items()}, case.attributes)
    return {t.name: told.get(t.name, t.dtypes[0]) for t in op.types}


def runs(op: Op, case: Case) -> bool:
    """Whether a call has the dtypes that Poplar carries."""
    binding = binding_of(op, case)
    return all(binding[t.name] in carried(t) for t in op.types)


def program_of(op: Op, env: ShapeEnv) -> tuple[int, SpecialisedProgram]:
    """Return the program that a call runs, and its number."""
    for n, v in enumerate(lower(op)):
        if v.case.empty and all(env.value(x) > 0 for x in v.case.empty):
            continue
        if all(_matches(op, env, name, value) for name, value in v.case.values):
            return n, v
    raise LookupError("no case of the op is the call's")


def _matches(op: Op, env: ShapeEnv, name: str, value: int | bool | Equal) -> bool:
    given = env.attribute(name)
    if isinstance(value, Equal):
        return (given == value.number) == value.holds
    if isinstance(value, bool):
        return bool(given) == value
    return given == op.attribute(name).values[value]


def call_text(op: Op, env: ShapeEnv, binding: Mapping[str, DType], tiles: int, bytes_: int) -> str:
    """Return what a call fixes, a line each."""
    lines = [f"number tiles {tiles}", f"number bytes {bytes_}"]
    lines += [f"size {name} {value}" for name, value in env.dims.items()]
    for (name, of), sizes in env.groups.items():
        lines.append(f"group {name}@{of or ''} {' '.join(map(str, sizes))}")
        if of is None:
            lines.append(f"size size({name}) {int(np.prod(sizes, dtype=np.int64))}")
    for o in (*op.inputs, *op.outputs, *op.temporaries):
        shape = env.outputs.get(o.name, None) if o in op.outputs else env.shape_of(o)
        lines.append(f"shape {o.name} {' '.join(map(str, shape if shape is not None else env.shape_of(o)))}")
        if o.optional:
            lines.append(f"flag {o.name} {int(o.name in env.present)}")
    for a in op.attributes:
        value = env.attributes[a.name]
        for n, one in enumerate(value) if isinstance(value, tuple) else [(-1, value)]:
            word = {AttributeKind.FLOAT: "real", AttributeKind.BOOL: "flag", AttributeKind.STR: "text"}.get(a.kind, "integer")
            text = str(int(bool(one))) if word == "flag" else one
            lines.append(f"{word} {a.name}.{n} {text}")
    lines += [f"type {t.name} {TYPES[binding[t.name]].codelet}" for t in op.types]
    return "\n".join(lines)


def run(h: Harness, op: Op, case: Case, tiles: int = 16, bytes_: int = 638976) -> dict[str, np.ndarray]:
    """Return the outputs of a call.

    Raises:
        RuntimeError: with the message of what was thrown.
    """
    env, binding = env_of(op, case), binding_of(op, case)
    number, program = program_of(op, env)
    text = call_text(program.case.op, env_of_case(program.case.op, env), binding, tiles, bytes_)
    inputs, outputs = [], {}
    for i in op.inputs:
        arg = case.inputs.get(i.name)
        if arg is not None:
            inputs.append(np.ascontiguousarray(arg.data).astype(_carried(resolve(i.type, binding)), copy=False))
    for o in op.outputs:
        outputs[o.name] = np.full(env.shape_of(o), 85, _carried(resolve(o.type, binding)))
    message = ctypes.create_string_buffer(1000)
    pointers = [(ctypes.c_void_p * max(len(a), 1))(*(x.ctypes.data for x in a)) for a in (inputs, [*outputs.values()])]
    which = h.functions[f"{op.name}_{number}"]
    code = h.library.run(which, text.encode(), str(h.codelets).encode(), *pointers, message)
    if code:
        raise RuntimeError(message.value.decode())
    return {o.name: outputs[o.name].astype(numpy_dtype(resolve(o.type, binding)), copy=False) for o in op.outputs}


def env_of_case(op: Op, env: ShapeEnv) -> ShapeEnv:
    """Return the same bound sizes for an op with the temporaries of a case."""
    dims = dict(env.dims)
    for name, size in op.dims:
        if name not in dims:
            dims[name] = replace(env, op=op, dims=dims).value(size)
    return replace(env, op=op, dims=dims)


def _carried(dtype: DType) -> np.dtype[Any]:
    return numpy_dtype(DType.INT32 if dtype is DType.INT64 else dtype)


def check(h: Harness, op: Op, case: Case, tiles: int = 16) -> str:
    """Run a call and return what is wrong with what comes out, nothing where it is right."""
    want, refused = None, ""
    try:
        want = evaluate(op, {n: None if a is None else a.data for n, a in case.inputs.items()}, case.attributes)
    except DomainError as why:
        refused = str(why)
    try:
        got = run(h, op, case, tiles)
    except RuntimeError as why:
        return "" if want is None else f"it threw: {why}"
    if want is None:
        return f"it ran, but must be refused: {refused}"
    found = [compare(name, got[name], want[name]).message for name in want]
    return "; ".join(m for m in found if m)
