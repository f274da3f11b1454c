"""Files of the Helm chart that are made of the models: Chart.yaml, values, schema, README."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from espha_operator.api.names import KIND, RELEASE
from espha_operator.api.values import Values

# Three engines, of which one is active.
_ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><g fill="#3f51b5">'
    b'<circle cx="32" cy="14" r="10"/><g opacity=".45"><circle cx="14" cy="46" r="10"/>'
    b'<circle cx="50" cy="46" r="10"/></g></g></svg>'
)
# Since this version the API server knows CEL rules for good.
_OLDEST = ">=1.29.0-0"
_README = f"""# espha

The operator for `{KIND}`: event-stream models that run on several engines in hot failover.

```
helm install espha . --namespace espha-system --create-namespace
helm test espha --namespace espha-system
```

Needs Kubernetes {_OLDEST.removeprefix(">=").removesuffix(".0-0")} or newer. The pages below are \
in the project's documentation.

- Install, uninstall: `docs/how-to/install.md`
- Upgrade, roll back: `docs/how-to/upgrade.md`
- Models checked when they are applied: `docs/how-to/check-models-when-applied.md`

## Values

Helm refuses values that are not in this table (`values.schema.json`).

| value | default | meaning |
| --- | --- | --- |
"""


def chart() -> dict[str, Any]:
    """Return Chart.yaml."""
    return {
        "apiVersion": "v2",
        "name": "espha",
        "description": f"Operator for highly available event-stream processing ({KIND})",
        "type": "application",
        "version": RELEASE,
        "appVersion": RELEASE,
        "kubeVersion": _OLDEST,
        "keywords": ["event stream processing", "high availability", "kafka", "operator"],
        "icon": f"data:image/svg+xml;base64,{base64.b64encode(_ICON).decode()}",
    }


def schema() -> str:
    """Return values.schema.json."""
    made = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **Values.model_json_schema(by_alias=True),
    }
    return json.dumps(made, indent=2) + "\n"


def values() -> dict[str, tuple[str, Any]]:
    """Return the description and the default of each value at the top of values.yaml."""
    known = Values().model_dump(by_alias=True, exclude={"global_", "enabled"})
    fields = {field.alias or name: field for name, field in Values.model_fields.items()}
    return {name: (fields[name].description or "", value) for name, value in known.items()}


def readme() -> str:
    """Return the chart's README."""
    return _README + "\n".join(_rows("", Values())) + "\n"


def _rows(before: str, part: BaseModel) -> Iterator[str]:
    for name, field in type(part).model_fields.items():
        value, path = getattr(part, name), f"{before}{field.alias or name}"
        if isinstance(value, BaseModel):
            yield from _rows(f"{path}.", value)
        else:
            default = "" if value in ("", {}, []) else f"`{json.dumps(value)}`"
            yield f"| `{path}` | {default} | {field.description} |"
