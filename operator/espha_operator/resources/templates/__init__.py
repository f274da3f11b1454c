"""Configuration files of the servers, as Jinja templates."""

from typing import Any

import jinja2

# The files are not HTML; a forgotten variable must stop us, not give an empty setting.
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("espha_operator.resources", "templates"),
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701
)


def render(template: str, **values: Any) -> str:
    """Return the configuration file of that name with the given values."""
    return _ENVIRONMENT.get_template(f"{template}.j2").render(**values)
