"""Mistakes in the signature of a spec: types, operands, shapes, attributes, requirements, examples, references."""

from tests.diagnostics.harness import Case, case

AXIS = "inputs: {x: 'T[*A, N, *B]'}\noutputs: {y: 'T[*A, N, *B]'}\n"
PLACED = f"{AXIS}attributes: {{axis: {{type: axis, dim: N, default: -1}}}}\n"
MATRIX = "inputs: {x: 'T[N, C]'}\noutputs: {y: 'T[N, C]'}\n"
LISTED = (
    "inputs: {x: 'T[*K, *R]'}\noutputs: {y: 'T[*K]'}\nkernel: 'y[*K] = sum[*R](x[*K, *R])'\n"
    "attributes: {axes: {type: axes, group: R, default: [0]}}\n"
)
TWO_PLACED = (
    "inputs: {x: 'T[*K, N, M]'}\noutputs: {y: 'T[*K, M, N]'}\nkernel: 'y[*K, j, i] = x[*K, i, j]'\n"
    "attributes: {a: {type: axis, dim: N, default: 0}, b: {type: axis, dim: M, default: 1}}\n"
)
PERMUTED = (
    "inputs: {x: 'T[*R]'}\noutputs: {y: 'T[*R]'}\nkernel: 'y[*R] = x[*R]'\n"
    "attributes: {p: {type: permutation, group: R, of: x, default: []}}\n"
)
ADDED = (
    "inputs: {x: 'T[*A, *B]'}\noutputs: {y: 'T[*A, K, *B]'}\nshape: {K: 2}\nkernel: 'y[*A, k, *B] = x[*A, *B]'\n"
    "attributes: {axis: {type: axis, dim: K, default: 0}}\n"
)
DEEP = "(-" * 120 + "1" + ")" * 120
SCALED = "kernel: y = x * alpha\n"
TOLD = (
    "inputs: {x: 'T[N]'}\noutputs: {y: 'T[count]'}\nattributes: {count: size}\n"
    "kernel: |\n  count = sum[n](cast(int64, x[n] > 0))\n  y[k] = pad(x[k], 0)\n"
)

WINDOW = {
    "inputs": "{x: 'T[N, *S]'}",
    "attributes": "{stride: {type: 'int[*S]', default: 1, check: stride > 0}, k: {type: int, default: 1, check: k > 0}}",
    "outputs": "{y: 'T[N, *O]'}",
    "shape": "{O: (S - k) // stride + 1}",
    "kernel": "'y[n, *O] = x[n, *(O*stride)]'",
}


def window(fragment: str, *messages: str) -> Case:
    """Return a spec of one and two axes with these lines in place of its own."""
    present = {line.lstrip("⟦").partition(":")[0].rstrip("⟧") for line in fragment.split("\n")}
    ranks = [] if "ranks" in present else ["ranks: {S: [1, 2], O: S}"]
    return case("\n".join([*ranks, *(f"{k}: {v}" for k, v in WINDOW.items() if k not in present), fragment]), *messages)


RANKS: list[Case] = [
    window("ranks: ⟦[1, 2]⟧", "expected a mapping of groups to their ranks"),
    window("ranks: {⟦S⟧: 1, O: S}", "one group lists the ranks, the others name it"),
    case(
        "ranks: {S: [1], O: [1]}\ninputs: {x: 'T[*S]'}\noutputs: {y: 'T[*O]'}\nattributes: {k: 'int[*O]'}\nshape: {O: k}\n"
        "require: [S == ⟦O⟧]\nkernel: 'y[*O] = x[*(unravel(S, position(*O)))]'",
        "there are as many of 'O' as another list of numbers says",
    ),
    case(
        "ranks: {S: [1], O: [1]}\ninputs: {x: 'T[*S]'}\noutputs: {y: 'T[*O]'}\nattributes: {k: 'int[*O]'}\n"
        "shape: {O: k + ⟦S⟧}\nkernel: 'y[*O] = 0'",
        "'S' is a group of axes",
    ),
    window("ranks: {S: [1], O: ⟦Q⟧}", "'Q' lists no ranks"),
    window("ranks: {S: [1], O: ⟦{}⟧}", "expected ranks, or the group that lists them"),
    window("ranks: {S: ⟦[]⟧, O: S}", "there is no rank"),
    window("ranks: {S: [⟦0⟧, 1, ⟦9⟧], O: S}", "a rank is a whole number from 1 to 8", "a rank is a whole number from 1 to 8"),
    window("ranks: {S: [⟦true⟧], O: S}", "a rank is a whole number from 1 to 8"),
    window("ranks: {S: [2, ⟦1⟧], O: S}", "ranks rise"),
    window("ranks: {S: [1], O: S, ⟦q⟧: S}", "the indices of a group of several ranks have its name in small letters"),
    window("ranks: {S: [1], O: S, ⟦Q__a⟧: S}", "'Q__a' can't name a group"),
    window("ranks: {S: [1], O: S, ABc: S, ⟦Abc⟧: S}", "the indices of '*Abc' would be called as those of '*ABc'"),
    window("inputs: {x: 'T[N, *S]', ⟦S0⟧: 'T[]'}", "'S0' is the size of an axis of '*S'"),
    window("kernel: 'y[n, *O] = x[⟦o0⟧, *(O*stride)]'", "'o0' is the index of an axis of '*O'"),
    window("⟦native⟧: {cpp: {code: ''}}", "native code is of one rank"),
    window("kernel: 'y[n, *O] = x[n, ⟦O⟧]'", "'O' is a group of axes"),
    window("kernel: 'y[n, *O] = x[n, *(minimum(O*stride, ⟦S⟧ - 1))]'", "nothing runs over '*S' here"),
    window("shape: {q: ⟦2*stride⟧, O: (S - q) // stride + 1}", "'q' is one size, and 'stride' has another value for each axis"),
    window("shape: {q: ⟦S // 2⟧, O: (S - q) // stride + 1}", "'q' is one size, and 'S' has another value for each axis"),
    window("kernel: |\n  ⟦S⟧[n] = x[n, *S]\n  y[n, *O] = x[n, *(O*stride)]", "'S' is a group of axes"),
    window("kernel: |\n  ⟦S⟧ = 2\n  y[n, *O] = x[n, *(O*stride)]", "'S' is a group of axes"),
    window("inputs: {x: 'T[N, *S]', ⟦'S?'⟧: 'T[]'}", "'S' is a group of axes"),
    window("outputs: {y: 'T[N, *O]', ⟦O⟧: 'T[]'}", "'O' is a group of axes"),
    window("types: {T: floating, ⟦S⟧: floating}", "'S' is a group of axes"),
    window(
        "attributes: {stride: {type: 'int[*S]', default: 1}, k: {type: int, default: 1}, ⟦S⟧: {type: int, default: 1}}",
        "'S' is a group of axes",
    ),
    window("kernel: |\n  v = cast(T, stride)\n  y[n, *O] = x[n, *(O*stride)] * ⟦v⟧", "each axis has a 'v' of its own"),
    window("kernel: |\n  v = cast(T, size(S))\n  y[n, *O] = x[n, *(O*stride)] * ⟦v0⟧", "'v0' is the 'v' of an axis"),
    window("kernel: 'y[n, *O] = x[n, ⟦*⟧(k)]'", "nothing in this differs from axis to axis"),
    window("kernel: 'y[n, *O] = x[n, *(O*stride + all(⟦*⟧(O > 0)))]'", "this is written once for each axis already"),
    window("kernel: 'y[n, *O] = x[n, *(O + minimum(⟦*⟧stride, 0))]'", "this is written once for each axis already"),
    window("kernel: 'y[n, *O] = x[n, *(O*⟦strid⟧)]'", "unknown name 'strid'"),
    window("shape: {O: (S - ⟦q⟧) // stride + 1}", "unknown name 'q'"),
    window(
        "attributes: {stride: {type: 'int[*S]', default: ⟦[1]⟧, check: stride > 0}, k: {type: int, default: 1, check: k > 0}}",
        "'stride' has 2 elements, and the default has 1",
    ),
]

JOIN = {
    "counts": "{x: [2, 3], N: x}",
    "inputs": "{x: 'T[N]', w: 'T[]'}",
    "attributes": "{k: {type: 'int[*x]', default: 1}}",
    "outputs": "{y: 'T[M]'}",
    "shape": "{M: sum(*N)}",
    "kernel": "'y[i] = pad(*(x[i - before(N)]))'",
}


def joined(fragment: str, *messages: str) -> Case:
    """Return a spec of two and three operands with these lines in place of its own."""
    present = {line.lstrip("⟦").partition(":")[0].rstrip("⟧") for line in fragment.split("\n")}
    return case("\n".join([*(f"{k}: {v}" for k, v in JOIN.items() if k not in present), fragment]), *messages)


SPLIT = (
    "counts: {y: [2, 3], P: y}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[P]'}\nattributes: {k: {type: 'int[*y]'}}\nshape: {P: k}\n"
)

COUNTS: list[Case] = [
    joined("counts: ⟦2⟧", "expected a mapping of names to their counts"),
    joined("counts: {⟦x⟧: 2}", "one name lists the counts, the others name it"),
    joined("counts: {x: [2], N: ⟦w⟧}", "'w' lists no counts"),
    joined("counts: {x: [2], N: ⟦{}⟧}", "expected counts, or the name that lists them"),
    joined("counts: {x: ⟦[]⟧, N: x}", "there is no count"),
    joined("counts: {x: [⟦0⟧, 2, ⟦2⟧], N: x}", "a count is a whole number from 1 to 8", "counts rise"),
    joined("counts: {x: [2], N: x, ⟦k⟧: x}", "no operand or dimension is called 'k'"),
    joined("counts: {x: [2], N: x, ⟦T⟧: x}", "no operand or dimension is called 'T'"),
    joined("counts: {x: [2], ⟦N⟧: [2]}", "one name lists the counts, the others name it"),
    joined("⟦native⟧: {cpp: {code: ''}}", "native code is of one count"),
    joined("inputs: {x: 'T[N]', ⟦x0⟧: 'T[]'}", "'x0' is one of several 'x'"),
    joined("kernel: 'y[i] = ⟦x1⟧[0]'", "'x1' is one of several 'x'"),
    joined("kernel: 'y[i] = pad(⟦x⟧[i], 0)'", "there are several 'x'"),
    joined("outputs: {y: 'T[⟦N⟧]'}\nshape: {}\nkernel: y[i] = w[]", "there are several 'N'"),
    joined("kernel: 'y[i] = sum(⟦*⟧x[0])'", "'*x' are whole operands"),
    joined("kernel: 'y[i] = pad(*(x[i - sum(⟦*⟧N)]))'", "this is written once for each operand already"),
    joined("kernel: 'y[i] = pad(*(x[i + sum(⟦*⟧(N))]))'", "this is written once for each operand already"),
    joined("kernel: 'y[i] = sum(*(pad(⟦*⟧(x[i]), 0)))'", "this is written once for each operand already"),
    joined("kernel: 'y[i] = maximum(w[], ⟦*⟧(w[]))'", "nothing in this differs from operand to operand"),
    joined("kernel: 'y[i] = w[] * ⟦before⟧(N)'", "before(N) is another one for each"),
    joined("kernel: |\n  a = x[0] * 2\n  y[i] = w[] * ⟦a⟧", "each operand has a 'a' of its own"),
    joined("kernel: |\n  a = x[0] * 2\n  y[i] = sum(*(a)) + ⟦a1⟧", "'a1' is the 'a' of an operand"),
    joined("inplace: {y: ⟦x⟧}", "there are several 'x'"),
    joined("examples: [{x: ⟦1.0⟧}]", "there are several 'x'"),
    case(SPLIT + "require: [sum(*P) == N]\nkernel: y[i] = x[before(P) + i]\ninplace: {⟦y⟧: x}", "there are several 'y'"),
    case(SPLIT + "kernel: 'y[i] = ⟦x[before(P) + i]⟧'", "the read may fall outside 'x'"),
]

OPERANDS: list[Case] = [
    case("types: {T: [floating, ⟦float23⟧]}", "unknown dtype 'float23'"),
    case("types: {T: ⟦float⟧}", "unknown dtype 'float'"),
    case("inputs: {x: 'T⟦[⟧N'}", "'[' was never closed"),
    case("inputs: {x: 'T⟦(⟧N'}", "'(' was never closed"),
    case("inputs: {x: 'T[N]⟦]⟧'}", "unmatched ']'"),
    case(
        "shape: {A: ⟦-3⟧}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[A]'}\nkernel: 'y[i] = pad(x[i], 0)'",
        "the size 'A' is not negative",
    ),
    case("require: [⟦1 > 2⟧, ⟦1 > 2 and N > 0⟧]\n" + MATRIX, *["this never holds: every call is refused"] * 2),
    case("types: {T: ⟦complex64⟧}", "unknown dtype 'complex64'"),
    case("types: {T: floating, ⟦U⟧: []}", "the type 'U' stands for no dtype"),
    case("types: {T: floating, ⟦int8⟧: [int8]}", "'int8' is a dtype, so no type variable"),
    case("types: {T: floating, ⟦U⟧: integer}", "nothing determines the type 'U'"),
    case("inputs: {x: '⟦S⟧[...]'}\noutputs: {y: 'int8[...]'}\ntypes: {}", "unknown type 'S'"),
    case("inputs: {x: '⟦complex64⟧[...]', z: 'T[]'}", "unknown type 'complex64'"),
    # A name that is being declared names no type, and no size.
    case("inputs: {x: '⟦x⟧[...]'}\noutputs: {y: 'int8[...]'}\ntypes: {}", "unknown type 'x'"),
    case("outputs: {y: '⟦y⟧[...]'}", "unknown type 'y'"),
    case("outputs: {y: 'T[⟦y⟧ + 1]'}", "'y' is an operand, and only dimensions and attributes are known before its elements are"),
    case("inputs: {x: '⟦exp(T)⟧[...]', z: 'T[]'}", "expected a type"),
    case("inputs: {x: '⟦T⟧'}", "expected a type and a shape"),
    case("inputs: {x: '⟦⟧'}", "an expression is missing here"),
    case("inputs: {x: 'T[⟦N + 1⟧]'}", "a dimension of an input is a name, a number, ... or *A"),
    case(
        "inputs: {x: 'T[...]', 'b?': 'T[⟦N + 1⟧]'}\nkernel: y = x * (2 if present(b) else 1)",
        "a dimension of an input is a name, a number, ... or *A",
    ),
    case("inputs: {x: 'T[⟦-1⟧]'}", "a dimension of an input is a name, a number, ... or *A"),
    case("inputs: {x: '⟦T[..., ...]⟧'}", "the axis group ... stands twice in one shape"),
    case("outputs: {y: '⟦T[..., ...]⟧'}", "the axis group ... stands twice in one shape"),
    case("inputs: {x: 'T[⟦a__b⟧]'}", "'a__b' can't name a dimension"),
    case("inputs: {x: 'T[⟦exp⟧]'}", "'exp' is a word of the language"),
    case("inputs: {x: 'T[⟦x⟧]'}", "'x' is an operand, so it can't name a dimension"),
    case("inputs: {x: 'T[⟦T⟧]'}", "'T' is a type, so it can't name a dimension"),
    case("inputs: {x: 'T[⟦a⟧]'}\nattributes: {a: int}", "'a' is an attribute, so it can't name a dimension"),
    case("inputs: {x: 'T[*A]', z: 'T[⟦A⟧]'}", "'A' is an axis group"),
    case("inputs: {⟦exp⟧: 'T[...]'}\nkernel: y[...] = 1", "'exp' is a word of the language"),
    case("inputs: {⟦int8⟧: 'T[...]'}\nkernel: y[...] = 1", "'int8' is a word of the language"),
    case("inputs: {x: 'T[...]', z: ⟦[1]⟧}", "expected a mapping of keys to values, found a list"),
    case(
        "inputs: {x: 'T[⟦*A⟧, N, *B]'}\nkernel: y[n] = 1\noutputs: {y: 'T[N]'}",
        "how many axes *A has can't be told",
        "how many axes *B",
    ),
    case("outputs: {y: 'T[⟦*A⟧]'}", "no input has the axis group *A"),
    case("outputs: {y: 'T[⟦N⟧]'}", "unknown dimension 'N'"),
    case("outputs: {y: 'T[⟦n:3⟧]'}", "a range is no size"),
    case("outputs: {y: 'T[⟦-2⟧]'}", "the size of an axis is not negative"),
    case(MATRIX + "shape: {K: ⟦N / C⟧}", "a dimension is a whole number over dimensions and int attributes"),
    case(
        "inputs: {x: 'T[N]', 'z?': 'T[M]'}\noutputs: {⟦y⟧: 'T[M]'}\nkernel: y[m] = x[0]",
        "'M' is known only when an optional input is given",
    ),
    case("shape: {⟦y⟧: 3}", "'y' has another meaning already"),
    case("shape: {K: ⟦M⟧}", "unknown dimension 'M'"),
    case(
        "outputs: {y: 'T[..., M]'}\nkernel: 'y[..., m] = x'\nshape: {M: ⟦L⟧ + 1, L: M + 1}", "'L' is derived here or further down"
    ),
    case("outputs: {y: 'T[..., M]'}\nkernel: 'y[..., m] = x'\nshape: {M: ⟦M⟧}", "'M' is derived here or further down"),
    # Sizes that inputs have too.
    case(MATRIX + "shape: {C: ⟦C⟧ // 2}", "'C' is derived here or further down"),
    case(MATRIX + "shape: {N: ⟦C⟧ + 1, C: N + 1}", "'C' is derived here or further down"),
    case(
        "inputs: {x: 'T[N]'}\noutputs: {y: 'T[M]'}\nkernel: 'y[m] = x[m]'\nshape: {M: ⟦N / 2⟧}",
        "a dimension is a whole number over dimensions and int attributes",
    ),
    case("shape: {K: ⟦...⟧}", "`...` stands in brackets only"),
    case(MATRIX + "shape: {K: '⟦minimum(N, 1.5)⟧'}", "a dimension is a whole number over dimensions and int attributes"),
    case(
        MATRIX + "attributes: {f: {type: float, default: 1.0}}\nshape: {K: '1 + (N if ⟦f > 0⟧ else C)'}",
        "only numbers, bool attributes and str attributes with values decide a dimension",
    ),
    case(
        MATRIX + "attributes: {mode: str}\nshape: {K: \"N if ⟦mode == 'a'⟧ else C\"}",
        "only numbers, bool attributes and str attributes with values decide a dimension",
    ),
    case(
        "inputs: {x: 'T[N]', 'b?': 'T[N]'}\nshape: {K: 'N if ⟦present(b)⟧ else 1'}\n"
        "outputs: {y: 'T[N]'}\nkernel: y = x * (2 if present(b) else 1)",
        "whether an input is given decides no size",
    ),
    case(MATRIX + "shape: {K: 'minimum(N, ⟦x⟧)'}", "'x' is an operand, and only dimensions and attributes are known"),
    case(MATRIX + "shape: {K: '⟦minimum(N)⟧'}", "minimum takes 2 arguments"),
]

ATTRIBUTES: list[Case] = [
    case("attributes: {alpha: ⟦flaot⟧}", "unknown attribute type 'flaot'"),
    case("attributes: {alpha: ⟦'str[2]'⟧}", "there are no lists of str"),
    case("attributes: {alpha: ⟦'int[0]'⟧}", "a list has 1 to 64 elements"),
    case("attributes: {alpha: {type: float, ⟦values⟧: [a]}}", "'values' belongs to str attributes"),
    case("attributes: {alpha: {type: float, ⟦dim⟧: N}}", "'dim' belongs to axis attributes"),
    case("attributes: {alpha: {type: float, ⟦binds⟧: T}}", "'binds' belongs to dtype attributes"),
    case("attributes: {mode: {type: str, values: ⟦[a, a]⟧}}", "a value stands twice"),
    case("attributes: {mode: {type: str, values: ⟦[]⟧}}", "'mode' admits no value"),
    case(AXIS + "attributes: {⟦axis⟧: axis}", "'axis' does not say which dimension it places"),
    case(PLACED.replace("dim: N", "dim: ⟦M⟧"), "no input has the dimension 'M'"),
    case(MATRIX + "attributes: {axis: {type: axis, dim: ⟦N⟧}}", "'N' does not stand between two axis groups"),
    case(PLACED.replace("-1}}", "-1}, axis2: {type: axis, dim: ⟦N⟧}}"), "'axis' places 'N' already"),
    case(
        ADDED.replace("T[*A, K", "T[K, *A").replace("y[*A, k", "y[k, *A").replace("dim: K", "dim: ⟦K⟧"),
        "no input has the dimension 'K'",
    ),
    case(
        ADDED.replace("T[*A, *B]", "T[*A, *B, N]").replace("= x[*A, *B]", "= sum[n](x[*A, *B, n])").replace("dim: K", "dim: ⟦K⟧"),
        "no input that is always given has the axes of 'y' beside 'K'",
    ),
    case(
        ADDED.replace("x: ", "'x?': ").replace("*B]'\natt", "*B] if present(x) else 0'\natt").replace("dim: K", "dim: ⟦K⟧"),
        "no input that is always given has the axes of 'y' beside 'K'",
    ),
    case(
        ADDED.replace("dim: K", "dim: ⟦K⟧").replace("0}}", "0}, listed: {type: axes, group: B, default: [0]}}"),
        "'listed' says where axes stand already",
    ),
    case(ADDED.replace("default: 0}", "default: 0}, more: {type: axis, dim: ⟦K⟧}"), "'axis' places 'K' already"),
    case("attributes: {⟦axes⟧: axes}", "'axes' does not say which group its axes are"),
    case("attributes: {axes: ⟦'axes[2]'⟧}", "there are no lists of axes"),
    case("attributes: {a: {type: int, ⟦group⟧: R}}", "'group' belongs to axes and permutation attributes"),
    case("attributes: {a: {type: int, ⟦keeps⟧: R}}", "'keeps' belongs to bool attributes"),
    case(LISTED.replace("group: R", "group: ⟦S⟧"), "no input has the axis group '*S'"),
    case(
        "inputs: {x: 'T[*R]'}\noutputs: {y: 'T[*R]'}\nattributes: {axes: {type: axes, group: ⟦R⟧}}",
        "'*R' does not stand beside one other group",
    ),
    case(
        LISTED.replace("x:", "'x?':").replace("group: R", "group: ⟦R⟧").replace("*R])'", "*R] if present(x) else 0)'"),
        "'*R' does not stand beside one other group",
    ),
    case(LISTED.replace("default: [0]", "default: ⟦[0, 1, 0]⟧"), "the default of 'axes' names an axis twice"),
    case(LISTED.replace("default: [0]", "default: ⟦0⟧"), "the default of 'axes' must be a list"),
    case(LISTED.replace("[0]}}", "[0]}, ⟦more⟧: {type: axes, group: R}}"), "'axes' lists axes already"),
    case(LISTED.replace("[0]}}", "[0]}, k: {type: bool, keeps: ⟦K⟧}}"), "'axes' lists the axes of '*R', not of '*K'"),
    case(LISTED.replace("[0]}}", "[0]}, k: {type: bool, keeps: R}, l: {type: bool, keeps: ⟦R⟧}}"), "'k' keeps '*R' already"),
    case("attributes: {k: {type: bool, keeps: ⟦R⟧}}", "no attribute lists the axes of '*R'"),
    case(LISTED + "broadcast: true", "an op whose operands broadcast has no attribute of axes"),
    case(
        LISTED.replace("inputs: {x", "inputs: {⟦z⟧: 'T[*K, N, *R]', x"),
        "'z' has axes beside those that 'axes' lists and the others",
    ),
    case(
        LISTED.replace("inputs: {x", "inputs: {⟦z⟧: 'T[*K, N]', x").replace("[0]}}", "[0]}, k: {type: bool, keeps: R}}"),
        "'z' has axes beside those between which 'k' keeps others",
    ),
    case(TWO_PLACED.replace("{x: ", "{⟦z⟧: 'T[*K, N]', x: "), "'z' has not just the axes that 'a' and 'b' place, and '*K'"),
    case(TWO_PLACED.replace("{x: ", "{⟦z⟧: 'T[N, *K, M]', x: "), "'z' has not just the axes that 'a' and 'b' place, and '*K'"),
    case(TWO_PLACED.replace("default: 1", "default: ⟦0⟧"), "the default of 'b' is that of another"),
    case(TWO_PLACED.replace("a:", "⟦a⟧:") + "native: {cpp: {code: x}}", "an op with native code has no axis attribute"),
    case(
        TWO_PLACED.replace("a:", "⟦a⟧:") + "broadcast: true",
        "an op whose operands broadcast has no axis attribute among the axes",
    ),
    case(TWO_PLACED.replace("1}}", "1}, ⟦c⟧: {type: axes, group: K}}"), "'a' places a dimension among the axes of a group"),
    case("attributes: {⟦p⟧: permutation}", "'p' does not say which group it permutes"),
    case("attributes: {⟦p⟧: {type: permutation, group: R}}", "'p' does not say whose axes it lists"),
    case("attributes: {p: ⟦'permutation[2]'⟧}", "there are no lists of permutations"),
    case("attributes: {a: {type: int, ⟦of⟧: x}}", "'of' belongs to permutation attributes"),
    case(PERMUTED.replace("group: R", "group: ⟦S⟧"), "no input has the axis group '*S'"),
    case(PERMUTED.replace("of: x", "of: ⟦z⟧"), "no input 'z' has the axes of '*R'"),
    case(
        PERMUTED.replace("T[*R]'}\nout", "T[*R, N]'}\nout").replace("= x[*R]", "= sum[n](x[*R, n])").replace("of: x", "of: ⟦x⟧"),
        "'x' has axes beside those of '*R'",
    ),
    case(
        PERMUTED.replace("{x: ", "{z: 'T[*R]', 'x?': ").replace("= x[", "= z[").replace("of: x", "of: ⟦x⟧"), "'x' may be absent"
    ),
    case(PERMUTED.replace("[]", "⟦[0, 2]⟧"), "the default of 'p' is no permutation of 2 axes"),
    case(PERMUTED.replace("[]", "⟦[0, -2]⟧"), "the default of 'p' is no permutation of 2 axes"),
    case(PERMUTED.replace("[]}}", "[]}, ⟦q⟧: {type: permutation, group: R, of: x}}"), "'p' says where axes stand already"),
    case(
        PERMUTED.replace("{p:", "{⟦p⟧:")
        .replace("[]}}", "[]}, a: {type: axis, dim: N}}")
        .replace("{x: ", "{z: 'T[*A, N, *B]', x: "),
        "'a' says where axes stand already",
    ),
    case(PERMUTED.replace("{p:", "{⟦p⟧:") + "broadcast: true", "an op whose operands broadcast has no permutation"),
    case(PERMUTED.replace("{p:", "{⟦p⟧:") + "native: {cpp: {code: x}}", "an op with native code has no permutation"),
    case(PERMUTED + "inplace: {y: ⟦x⟧}", "the axes of 'y' and 'x' stand in different orders"),
    case("attributes: {⟦to⟧: dtype}", "'to' does not say which type variable it chooses"),
    case("attributes: {to: {type: dtype, binds: ⟦U⟧}}", "unknown type variable 'U'"),
    case(TOLD.replace("count: size", "count: ⟦'size[2]'⟧"), "there are no lists of sizes"),
    case(TOLD.replace("count: size", "count: {type: size, ⟦default⟧: 1}"), "a size has no default"),
    case(
        TOLD.replace("count: size", "count: ⟦size⟧").replace("  count = sum[n](cast(int64, x[n] > 0))\n", ""),
        "nothing tells the size",
    ),
    case(
        "inputs: {x: 'T[N]'}\noutputs: {y: 'T[count]'}\nattributes: {count: ⟦size⟧}\nnative: {cpp: {code: x}}\n"
        "gradient: none\nreference: {torch: x}",
        "nothing tells 'count': there is no kernel",
        without=("kernel",),
    ),
    case(TOLD.replace("count = sum", "⟦count[i]⟧ = sum"), "'count' is one number"),
    case(
        TOLD.replace("cast(int64, x[n] > 0))", "x[n])").replace("sum[n](x[n])", "⟦sum[n](x[n])⟧"),
        "'count' is int64, and its value is",
    ),
    case(TOLD.replace("= sum[n](cast(int64, x[n] > 0))", "= ⟦count + 1⟧"), "'count' is computed from itself"),
    case(
        TOLD.replace(
            "  count = sum[n](cast(int64, x[n] > 0))", "  ⟦t[k:count] = pad(x[k], 0)⟧\n  count = sum[k](cast(int64, t[k] > 0))"
        ),
        "'t' depends on 'count', which data tells",
    ),
    case(
        TOLD.replace("  y[k] =", "  ⟦size_of_count⟧ = 2.0 * x[0]\n  y[k] = size_of_count *"),
        "'size_of_count' is what the op of the sizes calls its output",
    ),
    case(
        ADDED.replace("count", "K")
        .replace("K, *B]'}", "K, *B]', z: 'T[count]'}")
        .replace("{axis:", "{count: size, axis:")
        .replace(
            "'y[*A, k, *B] = x[*A, *B]'",
            "|\n  y[*A, k, *B] = x[*A, *B]\n  ⟦count = sum[*A, *B](cast(int64, x[*A, *B] > 0))⟧\n  z[k] = 1",
        ),
        "nothing but an output tells",
    ),
    case(TOLD + "examples: [⟦{x: [1.0], y: [[1.0]]}⟧]", "no size 'count' gives what the example says, or several do"),
    case("attributes: {pads: {type: 'int[2]', default: ⟦1⟧}}", "the default of 'pads' must be a list"),
    case("attributes: {pads: {type: 'int[2]', default: ⟦[1]⟧}}", "'pads' has 2 elements, and the default has 1"),
    case(
        "attributes: {pads: {type: 'int[2]', default: [1, ⟦a⟧]}}",
        "an element of the default of 'pads' must be a whole number, not 'a'",
    ),
    case("attributes: {n: {type: int, default: ⟦9223372036854775808⟧}}", "the default of 'n' does not fit in 64 bits"),
    case("attributes: {n: {type: int, default: ⟦0x" + "f" * 5000 + "⟧}}", "the default of 'n' does not fit in 64 bits"),
    case("attributes: {n: {type: int, default: ⟦1.5⟧}}", "the default of 'n' must be a whole number, not 1.5"),
    case("attributes: {n: {type: int, default: ⟦true⟧}}", "the default of 'n' must be a whole number, not true"),
    case("attributes: {a: {type: float, default: ⟦'1'⟧}}", "the default of 'a' must be a number, not '1'"),
    case("attributes: {a: {type: float, default: ⟦inf⟧}}", "the default of 'a' must be a number, not 'inf'"),
    case("attributes: {a: {type: 'float[2]', default: [0.0, ⟦-inf⟧]}}", "an element of the default of 'a' must be a number"),
    case("attributes: {a: {type: bool, default: ⟦1⟧}}", "the default of 'a' must be true or false, not 1"),
    case("attributes: {a: {type: str, default: ⟦1⟧}}", "the default of 'a' must be a text, not 1"),
    case("attributes: {m: {type: str, values: [tanh, none], default: ⟦tahn⟧}}", "'tahn' is none of the values of 'm'"),
    case("attributes: {to: {type: dtype, binds: T, default: ⟦int8⟧}}", "'int8' is no dtype of 'T'"),
    case(
        "attributes: {a: {type: float, default: ⟦-1.0⟧, check: a >= 0}}\n" + SCALED.replace("alpha", "a"),
        "the default of 'a' does not meet",
    ),
    case("attributes: {a: {type: float, check: ⟦a⟧}}", "a condition is a boolean; this is a fraction"),
    case("attributes: {a: {type: float, check: a > ⟦b⟧}}", "unknown name 'b'"),
    case("attributes: {a: {type: float, check: a > ⟦x⟧}}", "'x' is an operand, and a check is over attributes alone"),
    case("attributes: {a: {type: int, check: a < ⟦N⟧}}\n" + MATRIX, "'N' is a dimension, and a check is over attributes alone"),
    case("attributes: {a: {type: 'float[]', check: ⟦a > 0⟧}}", "'a' has no fixed length, so it takes no check"),
    case("require: [⟦N⟧]\n" + MATRIX, "a condition is a boolean; this is a whole number"),
    case("require: [⟦x⟧ > 0]", "'x' is an operand, and only dimensions and attributes are known"),
    case("require: ['⟦) = (⟧']", "expected one expression"),
    case("require: ['⟦" + DEEP + " > 0⟧']", "nested more than 100 deep"),
    case("require: ['⟦N >> 1⟧']\n" + MATRIX, "a condition is a boolean; this is a whole number"),
]

LEAKY = "attributes: {alpha: {type: float, default: 0.5}}\nkernel: y = x * alpha\n"
MODES = "attributes: {m: {type: str, values: [a, b]}}\nkernel: y = x if m == 'a' else 0\n"

WHOLE: list[Case] = [
    case("inplace: {z: ⟦x⟧}", "'z' is no output"),
    case("inplace: {y: ⟦w⟧}", "'w' is no input"),
    case(
        "inputs: {'x?': 'T[...]', z: 'T[...]'}\nkernel: y = z + (x if present(x) else 0)\ninplace: {y: ⟦x⟧}", "'x' may be absent"
    ),
    case("outputs: {y: 'float32[...]'}\nkernel: y = cast(float32, x)\ninplace: {y: ⟦x⟧}", "'y' is float32 and 'x' is T"),
    case("broadcast: true\ninplace: {y: ⟦x⟧}", "'x' may be smaller than 'y' where it is broadcast"),
    case("outputs: {y: 'T[2, ...]'}\nkernel: y[i, ...] = x[...]\ninplace: {y: ⟦x⟧}", "'y' has the shape [2, ...] and 'x' [...]"),
    case(
        "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y[i] = x[N - 1 - i]\ninplace: {y: ⟦x⟧}",
        "'y' can't take the memory of 'x': the read of 'x' on line 8 is not at the index that is written",
    ),
    case(
        "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y[i] = x[i] + pad(y[i - 1], 0)\ninplace: {y: ⟦x⟧}",
        "'y' can't take the memory of 'x': the op has a recurrence",
    ),
    case("kernel: 'y = x - max[...](x)'\ninplace: {y: ⟦x⟧}", "the read of 'x' on line 8 is not at the index"),
    case(
        "outputs: {y: 'T[...]', z: 'T[...]'}\nkernel: |\n  y = x + 1\n  z = x * 2\ninplace: {y: ⟦x⟧}",
        "it is still read on line 10, after 'y' is written",
    ),
    case("examples: [{⟦w⟧: 1, x: 1.0, y: 1.0}]", "'w' is no operand or attribute"),
    case("examples: [⟦{y: 1.0}⟧]", "the example lacks the input 'x'"),
    case("attributes: {a: float}\nkernel: y = x * a\nexamples: [⟦{x: 1.0, y: 1.0}⟧]", "the example lacks the attribute 'a'"),
    case("examples: [⟦{x: 1.0}⟧]", "the example says no output"),
    case("examples: [{x: [1.0, ⟦[1.0]⟧], y: 1.0}]", "the rows of 'x' have different lengths"),
    case("examples: [{x: [1.0, ⟦true⟧], y: 1.0}]", "'x' is T, not a boolean"),
    case("examples: [{x: [1.0, ⟦nan⟧], y: 1.0}]", "'x' holds numbers"),
    case(
        "examples: [{x: [⟦1e400⟧, .inf], y: [⟦-1.0e+400⟧, .nan]}]",
        "this number is beyond 1.8e308",
        "this number is beyond 1.8e308",
    ),
    case(
        "types: {T: integer}\nexamples: [{x: [⟦1000000000000000000000⟧], y: [⟦-1.0e+30⟧]}]",
        *["this number does not fit in 64 bits"] * 2,
    ),
    case("attributes: {a: {type: float, default: ⟦1e400⟧}}\n" + SCALED.replace("alpha", "a"), "this number is beyond 1.8e308"),
    case("attributes: {a: {type: 'float[2]', default: [.inf, ⟦1%s⟧]}}" % ("0" * 400), "this number is beyond 1.8e308"),
    case("types: {T: integer}\nexamples: [{x: ⟦1.5⟧, y: 1}]", "'x' is T, not a fraction"),
    case(LEAKY + "examples: [{x: 1.0, alpha: ⟦a⟧, y: 1.0}]", "the value of 'alpha' must be a number, not 'a'"),
    case(MODES + "examples: [{x: 1.0, m: ⟦c⟧, y: 1.0}]", "'c' is none of the values of 'm'"),
    case("examples: [{x: [1.0, 2.0], y: ⟦[1.0]⟧}]", "'y' has the shape [1], and the op gives [2]"),
    case(
        "inputs: {x: 'T[N]', w: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y = x * w\nexamples: [⟦{x: [1], w: [1, 2], y: [1]}⟧]",
        "the example does not fit",
    ),
    case("reference: {onnx: ⟦leaky relu⟧}", "'leaky relu' can't be an ONNX operator"),
    case("reference: {onnx: [LeakyRelu, '⟦leaky_relu(x)⟧']}", "'leaky_relu(x)' can't be an ONNX operator"),
    case("reference: {onnx: 'Clip(x, ⟦lo⟧)'}", "unknown name 'lo'"),
    case("reference: {onnx: 'Clip(⟦_⟧, max=_)'}", "unknown name '_'"),
    case("reference: {onnx: 'Clip(x, max=⟦_⟧ + 1)'}", "unknown name '_'"),
    case("reference: {onnx: '⟦z⟧, _ = Relu(x)'}", "'z' is no output"),
    case("reference: {torch: ⟦'x = 1'⟧}".replace("⟦'", "'⟦").replace("'⟧", "⟧'"), "the reference is not one Python expression"),
    case("reference: {torch: torch.relu(⟦xx⟧)}", "unknown name 'xx'"),
    case("reference: {torch: ⟦x.__class__⟧}", "'__class__' is private"),
    case("reference: {torch: '⟦lambda: x⟧'}", "the reference is a plain call or formula"),
    case("gradient: {body: d_x = d_y, saves: [⟦z⟧]}", "'z' is no output, so it can't be saved"),
    case("gradient: {body: d_x = d_y * y, saves: [y, ⟦y⟧]}", "'y' is saved twice"),
    case("types: {T: integer}\n⟦gradient⟧: {body: d_x = d_y}", "nothing here can be differentiated"),
    case("gradient: {body: d_x = ⟦y⟧}", "'y' is an output, which a gradient reads where `saves` lists it"),
    case(
        "broadcast: true\ngradient: {body: 'd_x[...] = ⟦mean[broadcast(x)](d_y[...])⟧'}", "mean does not run over broadcast axes"
    ),
    case("gradient: {⟦body⟧: t = d_y}", "the output 'd_x' is not assigned"),
    case("gradient: {⟦body⟧: d_x = d_y, saves: [y]}", "the saved output 'y' is not used"),
    case("gradient: {⟦surrogate⟧: true}", "the derived gradient is the derivative: nothing is held back from it"),
    case("gradient: {surrogate: ⟦yes please⟧}", "true or false"),
]

CASES = [*RANKS, *COUNTS, *OPERANDS, *ATTRIBUTES, *WHOLE]
