"""The page of benchmarks takes over what runs printed."""

from __future__ import annotations

import pytest

from tests.docs.benchmarks_page import PAGE, missed, updated

OLD = """# Benchmarks

Some words.

## Small

| op | time |
|---|---:|
| a | 1 ms |

## Large

| op | time |
|---|---:|
| a | 9 ms |

## Targets

| figure | measured |  |
|---|---:|---|
| a: small | 1 | held |
| a: large | 2 | missed |
"""

RUN = """machine

### Small

| op | time |
|---|---:|
| a | 2 ms |

### Targets

| figure | measured |  |
|---|---:|---|
| a: small | 3 | missed |
"""


def test_sections_and_figures_of_a_run_replace_the_old_ones() -> None:
    page = updated(OLD, [RUN])
    assert page == OLD.replace("1 ms", "2 ms").replace("| a: small | 1 | held |", "| a: small | 3 | missed |")
    assert (missed(OLD), missed(page)) == (1, 2)


def test_a_run_of_a_section_that_the_page_lacks_is_told() -> None:
    with pytest.raises(ValueError, match="Tiny"):
        updated(OLD, [RUN.replace("### Small", "### Tiny")])


def test_the_page_itself_can_be_read() -> None:
    page = PAGE.read_text()
    assert updated(page, []) == page
