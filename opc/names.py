"""Names of a spec that C++, Python or generated code keep for themselves, and how the targets spell them.

`lambda` is `lambda_` everywhere behind the spec's reader, and `lambda` again in messages. The rule is one to one: a name that
looks like the spelling of another gets one more underscore, so that `new` and `new_` may stand in one spec.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Container
from functools import lru_cache

from opc.macros import MACROS

REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")
"""The reductions of bodies; `mean` is written as sum / size before anything is computed."""
OF_GROUP, OF_PACK = ("size", "position", "rank", "axis"), ("count", "number", "before")
"""What is called like a function of groups of several ranks, and of several operands, see `opc.spec.expander`."""
OF_EACH = ("rank", "axis", "unravel", *OF_PACK)
"""All of them that nothing else calls."""
JOINED = {"all": " and ", "any": " or ", "sum": " + ", "prod": " * "}
"""What makes one value of those of all axes there, with the operator that it stands for: `all(*(...))`."""
LANGUAGE = frozenset(["if", "else", "and", "or", "not", "in", "is", "for", "True", "False", "None", "true", "false", "bool"])
"""The words of bodies and of YAML that mean something there, which nothing can be called."""

# The keywords of C++20 and its alternative tokens, and types and functions of headers that every kernel sees.
_CPP = """
    alignas alignof and_eq asm auto bitand bitor case catch char char16_t char32_t char8_t co_await co_return
    co_yield compl concept const const_cast consteval constexpr constinit decltype default delete do double
    dynamic_cast enum explicit export extern float friend goto inline int long mutable namespace new noexcept
    not_eq nullptr operator or_eq private protected public register reinterpret_cast requires restrict short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw
    typedef typeid typename union unsigned using virtual void volatile wchar_t xor xor_eq main std errno assert
    NULL EOF NAN INFINITY offsetof alloca size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
"""
# Names that Python code of a binding cannot give to a parameter or must not hide.
_PYTHON = ("self", "cls", "print", "exec", "match", *keyword.kwlist, *keyword.softkwlist)
# Names that generated functions use for something of their own.
_GENERATED = (
    "np",
    "math",
    "re",
    "functools",
    "ml_dtypes",
    "wanted",
    "len",
    "range",
    "tuple",
    "batch_axes",
    "output_mask",
    "graph",
    "node",
)
RESERVED = (frozenset(_CPP.split()) | MACROS | frozenset(_PYTHON) | frozenset(_GENERATED)) - LANGUAGE - {"_"}
"""The names that targets spell with an underscore."""
PARAMETERS = frozenset(("out", "only"))
"""Parameters that functions on arrays and tensors have beside the op's own: what an op declares is spelled with an underscore."""
MEMBERS = frozenset(
    (
        # Members of the class of ops of ONNX's reference evaluator, which holds attributes as members too.
        *("input", "output", "op_type", "domain", "run", "need_context", "eval", "create", "make_node", "implicit_inputs"),
        *(
            "onnx_node",
            "run_params",
            "has_subgraph",
            "has_linked_attribute",
            "attributes_names",
            "op_schema",
            "op_domain",
            "infer_name",
        ),
        # Members of the class of this package's ops, and parameters of its functions beside the attributes.
        *("evaluate", "infer_shapes", "infer_types", "inputs", "outputs", "optional_outputs", "flags", "defaults"),
        *("compute_sizes", "told_sizes"),
        *("dtypes", "shapes", "absent", "function", "body", "attributes", "ranks"),
        # Functions that NumPy references carry along.
        *("accumulator", "contract", "convert", "dtype_of", "elementwise", "first", "flatten", "grid", "inside", "mod"),
        *("not_empty", "power", "scatter", "shape_of", "some", "sum_to", "take", "widen", "floordiv"),
        *("integer_power", "philox", "computed", "widened", "least", "most"),
    )
)
"""What generated classes and helpers are called: attributes are spelled with an underscore."""
FUNCTIONS = frozenset(
    (
        # What the modules with an op's Python functions use or define at their top.
        *("all", "annotations", "any", "cache", "check_gpu", "check_in_graph", "constant", "cppimport"),
        *("custom_translation_table", "define"),
        *("dispatch", "get_current_context", "get_num_threads", "grad_enabled", "load", "map", "unified"),
        *("op_debug_context", "or_zeros", "popart", "primitive", "register_onnx_symbolic", "set_num_threads", "shape"),
        *("staticmethod", "str", "torch", "zero"),
        # What stands beside the functions of loops.
        *("best", "call_arguments", "loops", "rows", "table"),
        # What the runtime and the bindings call so with `opc_` in front, as kernels are.
        *("advise_huge_pages", "after_fork", "bind", "bind_inputs", "clamp_threads", "code", "context", "data", "get_threads"),
        *("given", "host", "host_parallel_for", "inputs", "job", "lent", "message", "message_text", "outputs", "parallel_for"),
        *("plan", "pool", "pool_taken", "processors", "range_body", "set_threads", "start_workers", "take_chunks"),
        *("tensor_type", "tensors", "thread_limit", "types", "work"),
        *(
            "array_allocate",
            "array_call",
            "array_copy_in",
            "array_copy_out",
            "array_is_emulated",
            "array_release",
            "array_source",
        ),
        *("array_wait", "cuda_context", "from_lane", "switch_fibers", "torch_lend_status", "torch_status"),
        *("plugin_check", "plugin_create", "plugin_destroy", "plugin_message", "plugin_run", "plugin_settle", "plugin_supports"),
        *("plugin_types", "plugin_workspace", "tensorrt_creators", "tensorrt_on_load", "tensorrt_place", "tensorrt_take"),
        "tensorrt_words",
    )
)
"""What generated code has beside the functions of an op: an op of such a name is spelled with an underscore."""
CLASSES = frozenset(("ReferenceOp", "Derivative", "DEFAULTS", "DOMAIN", "OPS", "Shape", *keyword.kwlist))
"""What no op type of ONNX is: no class of generated Python can be called so, and ONNX Runtime folds a `Shape` of any domain."""
KEYWORDS = frozenset(keyword.kwlist)
"""Those that Python, and with it the language of bodies, reads as something else unless they are declared."""

_SPELLED = RESERVED | PARAMETERS | MEMBERS | FUNCTIONS
"""The names that some declaration spells with an underscore."""
_DERIVED = re.compile(r"(?<!\w)([a-z]\w*_)(?=(_backward|_jvp)+(?!\w))")
_PARTS = re.compile(r"((?:[dt]_)*)([A-Za-z][A-Za-z0-9_]*?)(_*)")
_WORD = re.compile(r"(?<!\w)[A-Za-z]\w*_(?!\w)")


def _word(name: str) -> str:
    """Return a name without the prefixes that derived operands have and without underscores at the end."""
    found = _PARTS.fullmatch(name)
    return found[2] if found else name


def unused(wanted: str, *taken: Container[str]) -> str:
    """Return a name that nothing has: `wanted`, or that with a number behind it, `wanted_2` first."""
    found, count = wanted, 2
    while any(found in names for names in taken):
        found, count = f"{wanted}_{count}", count + 1
    return found


def mangled(name: str, taken: Collection[str] = ()) -> str:
    """Return a name as the targets spell it; `taken` are the names of this spec that are so spelled for what they declare."""
    word = _word(name)
    like = name.endswith("_") and word in _SPELLED
    return f"{name}_" if word in RESERVED or word in taken or like else name


def op_name(name: str) -> str:
    """Return the name of an op as the targets spell it."""
    return mangled(name, FUNCTIONS)


def registered(name: str) -> str:
    """Return an op's name for a framework that takes one that ends in an underscore for an op that writes to its input."""
    return f"{name}_op" if name.endswith("_") else name


def spelled(name: str) -> str:
    """Return a name as the spec spells it."""
    word = _word(name)
    return name[:-1] if name.endswith("_") and word in _SPELLED else name


@lru_cache(maxsize=1 << 14)
def in_words(message: str) -> str:
    """Return a message with the names in it as the spec spells them, those of derived ops too."""
    return _WORD.sub(lambda m: spelled(m.group()), _DERIVED.sub(lambda m: spelled(m.group()), message))
