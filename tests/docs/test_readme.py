"""README sells opc within one screen, and its figures are this project's."""

import re

import pytest

from opc.spec.files import in_folder
from tests.docs.pages import README, ROOT

TEXT = README.read_text()
SCREEN = 40


def test_a_spec_its_use_and_its_output_stand_on_the_first_screen() -> None:
    screen = "\n".join(TEXT.splitlines()[:SCREEN])
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", screen, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["yaml", "python", "console"]
    spec, use, output = (text for _, text in blocks)
    assert spec.startswith("op: ")
    assert "opc.load(" in use
    assert output.startswith("$ python ")


def test_the_first_screen_leads_to_the_pages_and_to_what_makes_a_site_of_them() -> None:
    screen = "\n".join(TEXT.splitlines()[:SCREEN])
    assert "](docs/README.md)" in screen
    assert "](docs/site.md)" in screen


def test_the_spec_has_no_line_that_could_be_left_out() -> None:
    from opc.spec.model import SpecModel

    spec = re.search(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert spec is not None
    keys = set(re.findall(r"^(\w+):", spec[1], re.MULTILINE))
    required = {name for name, field in SpecModel.model_fields.items() if field.is_required()}
    # What is declared of types says that the op takes all floating ones.
    assert keys == {*required, "kernel", "types"}


@pytest.mark.parametrize(
    ("told", "folder"),
    [
        (r"\[Ops to read and copy\]\(specs\): (\d+) of them", "specs"),
        (r"\]\(specs/onnx\): (\d+) of", "specs/onnx"),
        (r"\]\(specs/fused\): (\d+) of", "specs/fused"),
    ],
)
def test_the_number_of_ops_to_read_is_right(told: str, folder: str) -> None:
    count = re.search(told, TEXT)
    assert count is not None
    assert int(count[1]) == len(in_folder(ROOT / folder))
