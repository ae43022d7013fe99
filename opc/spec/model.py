"""The spec file as data: frozen pydantic models that hold exactly what the YAML may say.

The models check the form of the file (keys, kinds of values, names). What the texts inside mean (types, shapes, expressions) is
checked by `opc.analysis`, which knows the language.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from opc.ir.dtypes import DTYPES, TYPE_SETS
from opc.spec.text import (
    PATTERNS,
    backend_name_problem,
    domain_problem,
    header_problem,
    library_problem,
    name_problem,
    onnx_name_problem,
    op_name_problem,
)


def _op_name(value: Any) -> Any:
    if isinstance(value, str) and (problem := op_name_problem(value)):
        raise ValueError(f"'{value}' can't name an op: {problem}")
    return value


def _domain(value: Any) -> Any:
    if isinstance(value, str) and (problem := domain_problem(value)):
        raise ValueError(f"'{value}' can't be a domain: {problem}")
    return value


def _onnx_name(value: Any) -> Any:
    if isinstance(value, str) and (problem := onnx_name_problem(value)):
        raise ValueError(f"'{value}' can't be an op type of ONNX: {problem}")
    return value


def _backend_name(value: Any) -> Any:
    if isinstance(value, str) and (problem := backend_name_problem(value)):
        raise ValueError(f"'{value}' can't be what a backend calls the op: {problem}")
    return value


def _name(value: Any) -> Any:
    if isinstance(value, str) and (problem := name_problem(value)):
        raise ValueError(f"'{value}' can't be a name: {problem}")
    return value


def _input_name(value: Any) -> Any:
    if isinstance(value, str):
        _name(value.removesuffix("?"))
    return value


def _header(value: Any) -> Any:
    if isinstance(value, str) and (problem := header_problem(value)):
        raise ValueError(f"'{value}' can't be included: {problem}")
    return value


def _library(value: Any) -> Any:
    if isinstance(value, str) and (problem := library_problem(value)):
        raise ValueError(f"'{value}' can't be the name of a library or package: {problem}")
    return value


def _empty_mapping(value: Any) -> Any:
    return {} if value is None else value


def _empty_list(value: Any) -> Any:
    return [] if value is None else value


def _operand(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


def _attribute(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


def _type_set(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _texts(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


def _shape_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _truth_text(value: Any) -> Any:
    return str(value) if isinstance(value, bool) else value


def _gradient(value: Any) -> Any:
    if (
        isinstance(value, dict)
        and value.keys() & {"ties", "scatter", "surrogate"}
        and not value.keys() & {"body", "saves", "mode"}
    ):
        return {**value, "mode": "auto"}
    if isinstance(value, str):
        if value not in ("auto", "none"):
            raise ValueError(f"gradient is auto, none, or a mapping; not '{value}'")
        return {"mode": value}
    if value is None:
        raise ValueError("gradient is auto, none, or a mapping")
    return value


def _text(pattern: str) -> dict[str, Any]:
    """Return the schema of a text that a regular expression is found in."""
    return {"type": "string", "pattern": pattern}


def _whole(kind: str) -> WithJsonSchema:
    return WithJsonSchema(_text(f"^{PATTERNS[kind]}$"))


_NAME_PATTERN = "[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?"

Name = Annotated[
    StrictStr, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME_PATTERN}$", "maxLength": 64})
]
InputName = Annotated[
    StrictStr,
    BeforeValidator(_input_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME_PATTERN}[?]?$", "maxLength": 65}),
]
Header = Annotated[StrictStr, BeforeValidator(_header), _whole("header")]
Library = Annotated[StrictStr, BeforeValidator(_library), _whole("library")]
Expression = Annotated[StrictStr, BeforeValidator(_truth_text, json_schema_input_type=str | bool)]


_ELEMENT = rf"\s*({_NAME_PATTERN}|acc\s*\(\s*{_NAME_PATTERN}\s*\))\s*"
_ENTRY = rf"\s*(\.\.\.|\*\s*{_NAME_PATTERN}|{_NAME_PATTERN}|[0-9]+)\s*"
_INPUT_PATTERN = rf"^{_ELEMENT}\[\s*({_ENTRY}(,{_ENTRY})*,?\s*)?\]\s*$"
_OUTPUT_PATTERN = rf"^{_ELEMENT}\[[^:;={{}}]*((==|!=|<=|>=)[^:;={{}}]*)*\]\s*$"
_LIST = rf"\[([1-9]|[1-5][0-9]|6[0-4]|\s*\*\s*{_NAME_PATTERN}\s*)?\]"
_ATTRIBUTE_PATTERN = rf"^\s*((int|float|bool)({_LIST})?|str|dtype|axis|axes|permutation|size)\s*$"


TypeSet = Annotated[StrictStr, WithJsonSchema({"type": "string", "enum": [*TYPE_SETS, *(d.value for d in DTYPES)]})]
InputType = Annotated[StrictStr, WithJsonSchema(_text(_INPUT_PATTERN))]
OutputType = Annotated[StrictStr, WithJsonSchema(_text(_OUTPUT_PATTERN))]
AttributeType = Annotated[StrictStr, WithJsonSchema(_text(_ATTRIBUTE_PATTERN))]
AloneType = Annotated[StrictStr, WithJsonSchema(_text(_ATTRIBUTE_PATTERN.replace("|dtype|axis|axes|permutation", "")))]
"""An attribute's type that says all there is to say: one that places or chooses something must say what."""


class Model(BaseModel):
    """What all parts of a spec share: frozen, and unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)


class OperandModel(Model):
    """An input or output; in the file either the type text alone or a mapping."""

    type: StrictStr = Field(description="Type and shape, such as T[..., D].")
    doc: StrictStr = Field("", description="What the operand is.")


class InputModel(OperandModel):
    """An input; in the file either the type text alone or a mapping."""

    type: InputType = Field(description="Type and shape, such as T[..., D].")


class OutputModel(OperandModel):
    """An output; in the file either the type text alone or a mapping."""

    type: OutputType = Field(description="Type and shape, such as T[..., D].")


class AttributeModel(Model):
    """An attribute of the op."""

    type: AttributeType = Field(
        description="int, float, bool, str, dtype, axis, axes, permutation or size; int[2] and float[] for lists."
    )
    default: Any = Field(None, description="The value when none is given; without it the attribute is required.")
    check: Expression | None = Field(None, description="A condition every value must meet, such as alpha >= 0.")
    values: list[StrictStr] | None = Field(None, description="The texts a str attribute admits.")
    dim: Name | None = Field(None, description="The dimension an axis attribute places.")
    binds: Name | None = Field(None, description="The type variable a dtype attribute chooses.")
    group: Name | None = Field(None, description="The group of the axes that an axes attribute lists, or a permutation.")
    of: Name | None = Field(None, description="The input whose axes a permutation lists.")
    keeps: Name | None = Field(None, description="The group of which a bool attribute keeps axes of size 1.")
    doc: StrictStr = Field("", description="What the attribute does.")


class GradientModel(Model):
    """The gradient: derived (auto), absent (none), or a body of its own; and how ties and scatters are dealt with."""

    mode: SkipJsonSchema[Literal["auto", "none", "body"]] = "body"
    body: StrictStr | None = Field(None, description="Statements with d_<output> in and d_<input> out.")
    saves: Annotated[list[Name], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Outputs of the op that the body reads."
    )
    ties: Literal["first", "even"] = Field(
        "first", description="Whether equal elements of a max or min share its gradient, or the first of them takes it."
    )
    scatter: Literal["deterministic", "atomic"] = Field(
        "deterministic", description="Whether sums over data-dependent positions may be added up in any order."
    )
    surrogate: StrictBool = Field(
        False,
        description="Whether the gradient is not the derivative, on purpose: a straight-through one, or another in its place.",
    )


class NativeCodeModel(Model):
    """Code for one compiler, and what it needs of other people's libraries."""

    include: Annotated[list[Header], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Headers to include, such as Eigen/LU."
    )
    link: Annotated[list[Library], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Libraries to link, without lib and ending: openblas."
    )
    packages: Annotated[list[Library], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Installed Python packages that bring the headers and libraries, by their name on PyPI."
    )
    pkg_config: Annotated[list[Library], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Modules that pkg-config knows the headers and libraries of."
    )
    declarations: StrictStr | None = Field(None, description="Functions and types that the code uses, in a namespace of its own.")
    code: StrictStr = Field(description="Statements; operands, attributes, dimensions and types have their names.")


class NativeModel(Model):
    """Native code of the op, by compiler."""

    cpp: NativeCodeModel | None = Field(None, description="C++17 on views, for every backend with compiled kernels.")
    torch: NativeCodeModel | None = Field(None, description="C++ on at::Tensor, for the torch backend alone.")
    cuda: NativeCodeModel | None = Field(None, description="CUDA, kept for backends with a CUDA compiler.")


class ReferenceModel(Model):
    """Independent references the op is compared with."""

    onnx: Annotated[list[StrictStr], BeforeValidator(_texts, json_schema_input_type=str | list[str])] = Field(
        default_factory=list,
        description="The operator of the default ONNX domain that means the same, or calls of it: Conv(x, w, b, strides=stride).",
    )
    torch: StrictStr | None = Field(None, description="A torch expression over the op's inputs and attributes.")


class SpecModel(Model):
    """One op."""

    op: Annotated[StrictStr, BeforeValidator(_op_name), _whole("op")] = Field(description="Name in snake_case.")
    domain: Annotated[StrictStr, BeforeValidator(_domain), _whole("domain")] = Field(
        description="ONNX domain; the torch namespace has _ for each dot."
    )
    onnx_name: Annotated[StrictStr, BeforeValidator(_onnx_name), _whole("onnx_name")] | None = Field(
        None, description="Op type in ONNX models; by default the op's name in CamelCase."
    )
    names: Annotated[
        dict[Name, Annotated[StrictStr, BeforeValidator(_backend_name), _whole("backend_name")]],
        BeforeValidator(_empty_mapping),
    ] = Field(
        default_factory=dict, description="What single backends call the op, by the backend's name: rknn: my_domain::cstMyOp."
    )
    version: Annotated[StrictInt, Field(ge=1, le=1_000_000, description="Version of the op set.")]
    doc: StrictStr = Field(description="What the op computes.")
    types: Annotated[
        dict[Name, Annotated[list[TypeSet], BeforeValidator(_type_set, json_schema_input_type=TypeSet | list[TypeSet])]],
        BeforeValidator(_empty_mapping),
    ] = Field(default_factory=dict, description="Type variables and the dtypes each may stand for; or floating, integer, any.")
    ranks: Annotated[
        dict[Name, Annotated[list[Annotated[StrictInt, Field(ge=1, le=8)]], Field(min_length=1)] | Name],
        BeforeValidator(_empty_mapping),
    ] = Field(
        default_factory=dict,
        description="Groups of axes: how many one of them may have, such as S: [1, 2, 3], and which have as many, K: S.",
    )
    counts: Annotated[
        dict[Name, Annotated[list[Annotated[StrictInt, Field(ge=1, le=8)]], Field(min_length=1)] | Name],
        BeforeValidator(_empty_mapping),
    ] = Field(
        default_factory=dict,
        description="Operands: how many of one there may be, such as x: [2, 3, 4], and of what else there are as many, N: x.",
    )
    broadcast: StrictBool = Field(False, description="Whether inputs that share ... broadcast by NumPy's rules.")
    inputs: Annotated[
        dict[InputName, Annotated[InputModel, BeforeValidator(_operand, json_schema_input_type=InputType | InputModel)]],
        BeforeValidator(_empty_mapping),
    ] = Field(description="Inputs in order; a ? behind the name makes one optional.")
    attributes: Annotated[
        dict[Name, Annotated[AttributeModel, BeforeValidator(_attribute, json_schema_input_type=AloneType | AttributeModel)]],
        BeforeValidator(_empty_mapping),
    ] = Field(default_factory=dict, description="Attributes in order; either the type alone or a mapping.")
    outputs: dict[Name, Annotated[OutputModel, BeforeValidator(_operand, json_schema_input_type=OutputType | OutputModel)]] = (
        Field(description="Outputs in order.")
    )
    shape: Annotated[
        dict[Name, Annotated[StrictStr, BeforeValidator(_shape_text, json_schema_input_type=str | int)]],
        BeforeValidator(_empty_mapping),
    ] = Field(default_factory=dict, description="Derived dimensions, each an expression over dimensions and int attributes.")
    require: Annotated[list[Expression], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Conditions on dimensions and attributes."
    )
    inplace: Annotated[dict[Name, Name], BeforeValidator(_empty_mapping)] = Field(
        default_factory=dict, description="Outputs that may take the memory of an input."
    )
    out_of_range: Literal["error", "clamp", "zero"] = Field(
        "error", description="What a data-dependent index outside its axis does."
    )
    kernel: StrictStr | None = Field(None, description="The body, in index notation; only an op with native code may lack it.")
    native: NativeModel | None = Field(None, description="Code that runs in place of the kernel, or without one.")
    gradient: Annotated[
        GradientModel, BeforeValidator(_gradient, json_schema_input_type=Literal["auto", "none"] | GradientModel)
    ] = Field(
        default_factory=lambda: GradientModel(mode="auto", body=None, ties="first", scatter="deterministic", surrogate=False),
        description="auto, none, or a mapping: a body, ties, scatter, surrogate.",
    )
    reference: ReferenceModel | None = Field(None, description="Independent references.")
    examples: Annotated[list[dict[StrictStr, Any]], BeforeValidator(_empty_list)] = Field(
        default_factory=list, description="Worked examples: values by operand and attribute name."
    )
