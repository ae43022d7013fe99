"""docs/names.md lists every name that is spelled otherwise in generated code."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from opc.macros import MACROS
from opc.names import _CPP, FUNCTIONS, MEMBERS, PARAMETERS, RESERVED

PAGE = (Path(__file__).parents[2] / "docs/names.md").read_text()
NAMED = {name for code in re.findall(r"`([^`\n]+)`", PAGE) for name in re.findall(r"\w+", code)}


def test_the_page_lists_what_is_no_word_of_a_language() -> None:
    words = {*_CPP.split(), *keyword.kwlist, *keyword.softkwlist}
    assert (RESERVED | PARAMETERS | MEMBERS | FUNCTIONS) - MACROS - words <= NAMED


def test_the_page_lists_what_of_c_is_no_keyword() -> None:
    assert {"size_t", "std", "main", "errno", "assert", "offsetof", "alloca"} <= NAMED & RESERVED
