"""The Jinja templates of a backend: strict about names, exact about blanks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from opc.ir.op import Family
from opc.names import in_words
from opc.records import dataclass

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates in the folder `templates` of a package, such as `opc.backends.torch`.

    They may include what several backends share, such as `shared/assert_close.py.j2`, of `opc.backends.shipped`.
    """

    package: str

    def render(self, template: str, family: Family, **values: object) -> str:
        """Return the text of a template, which knows the spec's file as `source` and the op's name as `family`."""
        return _template(self.package, template).render(source=family.source_name, family=family.name, **values)


@cache
def _template(package: str, name: str) -> jinja2.Template:
    """Return a template of a package."""
    return environment(package).get_template(name)


@cache
def environment(package: str) -> jinja2.Environment:
    """Return the environment of a package's templates.

    Block tags leave no blank lines, a name without a value is a mistake, and the line break that ends a file stays. `in_words` is
    a filter for names in messages.
    """
    import jinja2

    from opc.backends.template_code import TemplateCode

    blanks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package), jinja2.PrefixLoader({"shared": jinja2.PackageLoader("opc.backends.shipped")})]
        ),
        undefined=jinja2.StrictUndefined,
        bytecode_cache=TemplateCode(str(blanks)),
        auto_reload=False,  # else each use of a template would look for its file
        **blanks,
    )
    made.filters["in_words"] = in_words
    return made
