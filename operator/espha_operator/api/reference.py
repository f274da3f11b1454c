"""docs/reference/resource.md, made of the schema."""

from collections.abc import Iterator
from typing import Any

from espha_operator.api.crd import structural
from espha_operator.api.names import GROUP, KIND, VERSION
from espha_operator.api.pods import PodTemplate
from espha_operator.api.spec import Spec
from espha_operator.api.status import Status

POD, _ANCHOR = "Pods of a component", "pods-of-a-component"
_HEAD = f"""# The resource `{KIND}`

`apiVersion: {GROUP}/{VERSION}`, `kind: {KIND}`; `kubectl get espha`. This page is made of the \
models in `operator/espha_operator/api` (`python -m espha_operator.api`); `kubectl explain \
esphadeployment.spec` shows the same.

The smallest useful resource:

```yaml
apiVersion: {GROUP}/{VERSION}
kind: {KIND}
metadata:
  name: demo
spec:
  model:
    configMap:
      name: my-model
```

Names have at most 24 characters, start with a letter and are made of lower-case letters, digits \
and `-`.
"""


def reference() -> str:
    """Return the page as Markdown."""
    spec, status = structural(Spec), structural(Status)
    sections = [
        _HEAD,
        _table("spec", spec),
        f"## {POD}\n\nWhat `pod` of each component can have.\n",
        _rows_of("pod", structural(PodTemplate)),
        "## Rules\n\nThe API server refuses a resource that breaks one of these.\n\n"
        + "\n".join(_sentences(spec))
        + "\n",
        _table("status", status),
    ]
    return "\n".join(sections)


def _table(name: str, schema: dict[str, Any]) -> str:
    return f"## {name}\n\n{_rows_of(name, schema)}"


def _rows_of(name: str, schema: dict[str, Any]) -> str:
    lines = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *_rows(name, schema)]) + "\n"


def _rows(path: str, schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        default = "required" if name in required else _default(field)
        text = field.get("description", "").replace("|", "\\|")
        if name == "pod":
            yield f"| `{here}` | object | {default} | {text} See [{POD}](#{_ANCHOR}). |"
            continue
        yield f"| `{here}` | {_type(field)} | {default} | {text} |"
        yield from _rows(here, field)
        yield from _rows(f"{here}[]", field.get("items", {}))


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default in (None, {}, ""):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    bounds = [
        f"{sign} {field[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in field
    ]
    choice = [f"`{one}`" for one in field.get("enum", [])]
    return " ".join([field.get("type", "object"), *bounds, *choice])


def _rules(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", []):
        yield path, rule["message"]
    for name, field in schema.get("properties", {}).items():
        if name != "pod":
            yield from _rules(f"{path}.{name}", field)
            yield from _rules(f"{path}.{name}[]", field.get("items", {}))


def _sentences(spec: dict[str, Any]) -> Iterator[str]:
    """Yield each rule's sentence once, with the fields that have it."""
    found: dict[str, list[str]] = {}
    for path, message in (*_rules("spec", spec), *_rules("pod", structural(PodTemplate))):
        found.setdefault(message, []).append(f"`{path}`")
    for message, paths in found.items():
        yield f"- {', '.join(paths)}: {message}"
