"""Words that mean to be more than words: ends of comments and strings, commands, tags, templates, and odd characters."""

from __future__ import annotations

CANARY = "opc_canary"
"""The file that commands in the words make, where anything runs them, and the name in code that they put in."""

WORDS = {
    "plain": "plain words",
    "end of a C comment": f"*/ int {CANARY} = 1; /* ",
    "line comment": f"// \\\nint {CANARY} = 1;",
    "backslash at the end": "ends in a backslash \\",
    "trigraphs": f"??/\nint {CANARY}; ??= ??/",
    "end of a docstring": f'"""\nimport os\n{CANARY} = 1\n"""',
    "quotes in a row": '""""""\'\'\'\'\'\' \'" "',
    "end of a string": f'"; {CANARY}(); " + str(',
    "escapes of Python": "\\N{NULL} \\x41 \\u0041 \\U00110000 \\",
    "formats": "%s %d %n %(x)s {x} {0} {{x}} {!r} %",
    "templates": "{{ 7 * 7 }} {% for i in x %} {# #} ${{ x }}",
    "shell": f"$(touch {CANARY}) `touch {CANARY}` ; touch {CANARY} # && touch {CANARY}",
    "CMake": f'${{HOME}} $ENV{{HOME}} [[ ]] ]=] " )\nfile(WRITE {CANARY} x)',
    "make": f"$(shell touch {CANARY})\n\ttouch {CANARY}",
    "TOML": f'"\n[tool.{CANARY}]\nx = 1\n"""',
    "HTML": f"</p><script>{CANARY}()</script><img src=x onerror={CANARY}()> &lt; <!-- --> </code></pre>",
    "attributes of HTML": f'" onmouseover="{CANARY}()" x=\'',
    "Markdown": f"\n\n# head\n\n[a](javascript:{CANARY}()) | a | b |\n```\n~~~\n[x]: y\n<b>b</b> {{: onclick={CANARY}() }}",
    "CDATA": f"]]> <![CDATA[ <?php {CANARY} ?>",
    "YAML": f'\n- x\n--- !!python/object/apply:os.system ["touch {CANARY}"]\n*a &a',
    "raw string": ')opc" )" )--- R"(',
    "line ends of Unicode": f"a\u2028{CANARY} = 1\u2029\x85{CANARY} = 1\x0b\x0c\x1c{CANARY} = 1",
    "carriage return": f"a\r{CANARY} = 1\r\nb",
    "directions": "\u202e\u2066 /* \u2069 \u200b\ufeff",
    "NUL": f"a\0b\n{CANARY}\0",
    "half a character": "a\ud800b \udfff",
    "astral": "\U0001f600 \U000e0001",
    "long": "wort" * 3000,
    "preprocessor": f"\n#include </etc/passwd>\n#define int {CANARY}\n#line 1\n",
    "words of Python": "a in b and not c not in d or e if f else g: lambda # in ",
    "code of Python": f"__import__('os').system('touch {CANARY}')",
}
"""What words are there, by what they mean to be."""

NAMES = (
    *("../up", "/tmp/absolute", "a/b", "a\\b", "..", ".", "", " ", "a b", "a\0b", "a\nb", "a;b", "a$b", "`id`", "a\tb", "-rf"),
    *("r\u0435lu", "\uff52elu", "relu\u200b", "re\u0301lu", "\u202eulr", "x\u2028y", "a\u00e9", "\u0661a", "a" * 65, "a" * 5000),
    *("con.py", "__init__", "__import__", "import", "lambda", "None", "int", "main", "std", "true", "this", "and_", "_x", "x_"),
    *("\x1b[2Jx", "x\r\x08", "\x9b31mx", "x\u2066y"),
    *("x\n", "X", "{{x}}", "%s", "<b>", "a*/", '"', "'", "a,b", "a:b", "a-b", "a.b", "*", "&a", "!x", "d_x", "opc", "self"),
)
"""What a spec might be tempted to call something."""

FILES = (
    *("plain.yaml", "two words.yaml", "quote'\".yaml", "back\\slash\\.yaml", f"line\n{CANARY} = 1\n#.yaml", "cr\rx = 1\r.yaml"),
    *(f"sep\u2028{CANARY} = 1.yaml", f'"""\n{CANARY} = 1\n""".yaml', f"$(touch {CANARY}).yaml", f"`touch {CANARY}`.yaml"),
    *(f"a; touch {CANARY};.yaml", "-o.yaml", "{{ x }}.yaml", "%s%n.yaml", "<script>.yaml", "*.yaml", "\u202eevil.yaml"),
    *("\udcff\udcfe.yaml", "r\u0435lu.yaml", "a" * 240 + ".yaml", "#.yaml", "x:1:2.yaml", ".yaml", "${HOME}.yaml"),
    *("a,b.yaml", 'a","b.yaml', "..\\..\\up.yaml", "a,,\n..-up,,\n.yaml", "\x1b[31m.yaml", "\x85.yaml"),
)
"""What a spec's file might be called; a surrogate stands for a byte that is no UTF-8."""
