"""Mistakes in the form of a spec: YAML, keys, kinds of values, names."""

from tests.diagnostics.harness import Case, case, file

LONG = "a" * 65

YAML: list[Case] = [
    file("⟦⟧", "the file is empty"),
    file("⟦⟧# only a comment\n", "the file is empty"),
    file("⟦- op: foo⟧\n", "a spec is a mapping of keys to values"),
    file("⟦just text⟧\n", "a spec is a mapping of keys to values"),
    file("op: foo\n⟦\t⟧domain: x\n", "not valid YAML: found character '\\t' that cannot start any token"),
    file("op: foo\n⟦---⟧\nop: bar\n", "a spec file holds one document"),
    file("op: &a foo\ndoc: ⟦*a⟧\n", "aliases (*a) are not part of the spec language"),
    file("op: ⟦!!python/name:os.system x⟧\n", "tags (tag:yaml.org,2002:python/name:os.system) are not part"),
    file("inputs: {x: T⟦[⟧...]}\n", "not valid YAML: expected ',' or '}', but got '['"),
    file("doc: a⟦:⟧ b\n", "not valid YAML: mapping values are not allowed here"),
    file("op: foo\ndoc: ⟦`⟧x\n", "not valid YAML: found character '`' that cannot start any token"),
    file("op: foo\ndoc: a⟦\x07⟧b\n", "a YAML file can't hold the character #x0007"),
    file("a: " + "[" * 31 + "⟦[⟧" + "]" * 32 + "\n", "nested more than 32 deep"),
    file("a: [" + "1, " * 49_997 + "⟦1⟧]\n", "the file has more than 50000 values"),
    file("⟦⟧" + "#" * (1 << 20) + "\n", "the file is larger than 1024 KiB"),
    file('⟦⟧doc: "\\UFFFFFFFF"\n', "not valid YAML: Python int too large"),
    case("? ⟦[a]⟧\n: 1", "a key is a single word"),
    case("doc: d\n⟦doc⟧: e", "'doc' stands here twice; first on line 8"),
    case("doc: ⟦no⟧", "YAML 1.1 reads no as a boolean, YAML 1.2 as a text"),
    case("doc: ⟦010⟧", "YAML 1.1 and YAML 1.2 read 010 differently"),
    case("doc: ⟦1_000⟧", "YAML 1.1 and YAML 1.2 read 1_000 differently"),
    case("doc: ⟦12:30⟧", "YAML 1.1 and YAML 1.2 read 12:30 differently"),
    case("attributes: {⟦on⟧: float}", "YAML 1.1 reads on as a boolean, YAML 1.2 as a text"),
]

FORM: list[Case] = [
    file(
        "⟦op⟧: foo\ndomain: t\nversion: 1\ndoc: d\ninputs: {x: 'int8[]'}\noutputs: {y: 'int8[]'}\n", "the key 'kernel' is missing"
    ),
    case("⟦atributes⟧: {}", "unknown key 'atributes'"),
    case("doc: ⟦3⟧", "expected a text, found the number 3"),
    case("doc: ⟦true⟧", "expected a text, found the boolean true"),
    case("⟦doc⟧:", "expected a text, found nothing"),
    case("version: ⟦1.0.0⟧", "expected a whole number, found the text '1.0.0'"),
    case("version: ⟦0⟧", "'version' must be at least 1"),
    case("version: ⟦1000001⟧", "'version' must be at most 1000000"),
    case("inputs: ⟦[x]⟧", "expected a mapping of keys to values, found a list"),
    case("broadcast: ⟦maybe⟧", "expected true or false, found the text 'maybe'"),
    case("require: ⟦D > 0⟧", "expected a list, found the text 'D > 0'"),
    case("out_of_range: ⟦wrap⟧", "'out_of_range' is 'error', 'clamp' or 'zero', not the text 'wrap'"),
    case("op: ⟦Foo⟧", "'Foo' can't name an op: an op's name is snake_case"),
    case("op: ⟦../foo⟧", "'../foo' can't name an op"),
    case("op: ⟦a_backward⟧", "'a_backward' can't name an op: names that end in '_backward'"),
    case("op: ⟦for⟧", "'for' can't name an op: 'for' is a word of the language"),
    case("op: ⟦opcode⟧", "'opcode' can't name an op: names that begin with 'opc'"),
    case("domain: ⟦opc.⟧", "'opc.' can't be a domain: a domain is lower-case names"),
    case("domain: ⟦ai.onnx.ml⟧", "'ai.onnx.ml' can't be a domain: it holds the ops of ONNX or PyTorch itself"),
    case("domain: ⟦a.int⟧", "'a.int' can't be a domain: 'int' is a word of C++, Python or"),
    case("domain: ⟦a.b_⟧", "'a.b_' can't be a domain: no part of a domain ends with an underscore"),
    case("inputs: {⟦'x;y'⟧: 'T[...]'}\nkernel: y[...] = 1", "'x;y' can't be a name: a name is an ASCII letter"),
    case("inputs: {⟦'x\"'⟧: 'T[...]'}\nkernel: y[...] = 1", "can't be a name: a name is an ASCII letter"),
    case("inputs: {⟦é⟧: 'T[...]'}\nkernel: y[...] = 1", "'é' can't be a name: a name is an ASCII letter"),
    case("inputs: {⟦else⟧: 'T[...]'}\nkernel: y[...] = 1", "'else' can't be a name: 'else' is a word of the language"),
    case("attributes: {⟦d_x⟧: float}", "'d_x' can't be a name: names that begin with 'd_'"),
    case("attributes: {⟦a__b⟧: float}", "'a__b' can't be a name: a name has no double underscore"),
    case("attributes: {⟦a__⟧: float}", "'a__' can't be a name: a name has no double underscore"),
    case(f"attributes: {{⟦{LONG}⟧: float}}", "can't be a name: a name has at most 64 characters"),
    case("⟦outputs⟧: {}", "an op has at least one output"),
    case("attributes: {⟦x⟧: float}", "'x' is already declared under inputs, on line 6"),
    case("attributes: {⟦x⟧: float}\nkernel: 'y[...] = x[...]'", "'x' is already declared under inputs, on line 6"),
    case("attributes: {⟦foo⟧: float}", "'foo' is the name of the op"),
    case("attributes: {⟦alpha⟧: {default: 1.0}}", "the key 'type' is missing in 'alpha'"),
    case("attributes: {alpha: {type: float, ⟦defualt⟧: 1.0}}", "unknown key 'defualt'"),
    case("attributes: {alpha: ⟦0.5⟧}", "expected a mapping of keys to values, found the number 0.5"),
    case("gradient: ⟦'off'⟧", "gradient is auto, none, or a mapping; not 'off'"),
    case("gradient: ⟦null⟧", "gradient is auto, none, or a mapping"),
    case("⟦gradient⟧: {saves: [y]}", "the key 'body' is missing in 'gradient'"),
    case("gradient: {body: d_x = d_y, ⟦mode⟧: auto}", "unknown key 'mode'"),
    case("gradient: {⟦body⟧: ''}", "the body is empty"),
    case("⟦kernel⟧: ''", "the body is empty"),
]

NATIVE: list[Case] = [
    case("⟦native⟧: {}", "there is no native code in 'native'"),
    case("native: {⟦rust⟧: {code: x}}", "unknown key 'rust'"),
    case("native: {⟦cpp⟧: {link: [m]}}", "the key 'code' is missing in 'cpp'"),
    case("native: {cpp: {⟦code⟧: ''}}", "the code is empty"),
    case("native: {cpp: {code: x, ⟦includes⟧: [a.h]}}", "unknown key 'includes'"),
    case("native: {cuda: {code: x, include: [⟦../a.h⟧]}}", "'../a.h' can't be included: a header is named relative"),
    case("native: {cpp: {code: x, link: [⟦-lm⟧]}}", "'-lm' can't be the name of a library or package"),
    case("native: {cpp: {code: x, packages: [⟦a==1⟧]}}", "'a==1' can't be the name of a library or package"),
    case("native: {cpp: {code: x, include: ⟦a.h⟧}}", "expected a list, found the text 'a.h'"),
    case("native: {torch: {code: x}}\n⟦inplace⟧: {y: x}", "native code can't be proved to leave its input alone"),
    case(
        "⟦native⟧: {torch: {code: x}}\ngradient: none\nreference: {torch: x}",
        "the key 'cpp' is missing in 'native'",
        without=("kernel",),
    ),
    case(
        "⟦native⟧: {cpp: {code: x}}\ngradient: none",
        "an op without a kernel has a torch reference to be tested against",
        without=("kernel",),
    ),
    case(
        "⟦native⟧: {cpp: {code: x}}\nreference: {torch: x}",
        "the gradient of native code can't be derived",
        without=("kernel",),
    ),
]

CASES = [*YAML, *FORM, *NATIVE]
