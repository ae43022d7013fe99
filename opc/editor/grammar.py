"""The TextMate grammar of kernel bodies, made of the language's own tables, so that it knows every word of it.

It is injected into YAML: a literal text under `kernel` or `body` is a body. Editors colour by it until `opc lsp` answers, and
viewers without a server may too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from opc.analysis.elaborate.scope import CONSTANTS, DTYPE_NAMES, FORMS
from opc.ir.dtypes import TYPE_SETS
from opc.ir.expr import REDUCTIONS
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.lang.tree import ORDER
from opc.names import JOINED, OF_EACH

SCOPE = "source.opc.body"
_WORDS = ("if", "else", "in")
_BOOLEANS = ("True", "False")


def grammar() -> dict[str, Any]:
    """Return the grammar, in the form of `*.tmLanguage.json`."""
    symbols = sorted({f.symbol.strip() for f in FUNCTIONS.values() if f.symbol}, key=lambda s: (-len(s), s))
    logic = [s for s in symbols if s.isalpha()]
    rules = {
        "comment.line.number-sign.opc": r"#.*$",
        "string.quoted.single.opc": r"'[^'\n]*'",
        "string.quoted.double.opc": r'"[^"\n]*"',
        "keyword.control.opc": _any((*_WORDS, *logic)),
        "constant.language.opc": _any((*_BOOLEANS, *CONSTANTS)),
        # `mean[k](...)` or `argsort[k](...)[i]`, and not `mean[n]`, which reads a temporary of that name.
        "keyword.operator.reduction.opc": rf"{_any((*REDUCTIONS, ORDER))}(?=\s*\[([^\[\]]|\[[^\[\]]*\])*\]\s*\()"
        # `all(*(...))`, of each axis of a group.
        rf"|{_any(JOINED)}(?=\s*\(\s*\*)",
        "support.function.form.opc": rf"{_any((*FORMS, 'acc', *OF_EACH))}(?=\s*\()",
        "support.function.opc": rf"{_any(CALLABLE)}(?=\s*\()",
        "support.type.dtype.opc": _any((*DTYPE_NAMES, *(name for name in TYPE_SETS if name not in REDUCTIONS))),
        "constant.numeric.opc": r"(?<![\w.])(0[xXbBoO][\da-fA-F_]+|(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?)",
        "variable.other.opc": r"(?<![\w.])[A-Za-z_]\w*",
        "keyword.operator.opc": "|".join(_escaped(s) for s in (*(s for s in symbols if not s.isalpha()), "=")),
    }
    body = {
        # The key and the header of the text; then every line that is indented more than the key, and those that are empty.
        "begin": r"^(\s*)((?:kernel|body))\s*(:)\s+(\|[-+1-9]*)\s*(#.*)?$",
        "while": r"^(?=\1\s+\S|\s*$)",
        "beginCaptures": {
            "2": {"name": "entity.name.tag.yaml"},
            "3": {"name": "punctuation.separator.key-value.mapping.yaml"},
            "4": {"name": "keyword.control.flow.block-scalar.literal.yaml"},
            "5": {"name": "comment.line.number-sign.yaml"},
        },
        "contentName": "meta.embedded.opc",
        "patterns": [{"include": "#body"}],
    }
    return {
        "name": "opc kernel body",
        "scopeName": SCOPE,
        "injectionSelector": "L:source.yaml -meta.embedded.opc -string -comment",
        "patterns": [body],
        "repository": {"body": {"patterns": [{"name": name, "match": match} for name, match in rules.items()]}},
    }


def grammar_text() -> str:
    """Return the grammar as the text of a file, the same for every run."""
    return json.dumps(grammar(), indent=2) + "\n"


def _any(words: Iterable[str]) -> str:
    return rf"(?<![\w.])({'|'.join(sorted(words))})(?!\w)"


def _escaped(symbol: str) -> str:
    return "".join(f"\\{c}" if c in "*+|^" else c for c in symbol)
