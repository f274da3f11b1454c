"""`python -m espha_operator.api`: write everything that is made of the models again."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from espha_operator.api.crd import crd
from espha_operator.api.names import KIND, RELEASE
from espha_operator.api.reference import reference
from espha_operator.api.values import Values

# Three engines, of which one is active.
_ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><g fill="#3f51b5">'
    b'<circle cx="32" cy="14" r="10"/><g opacity=".45"><circle cx="14" cy="46" r="10"/>'
    b'<circle cx="50" cy="46" r="10"/></g></g></svg>'
)
_NOTICE = "# Made of operator/espha_operator/api by `python -m espha_operator.api`; do not edit.\n"


def generated() -> dict[str, str]:
    """Return the text of each file, by its path relative to the repository."""
    # Helm must not delete the CRD, and with it every deployment, when the chart is uninstalled.
    kept = crd({"helm.sh/resource-policy": "keep"})
    return {
        "crds/esphadeployments.yaml": _NOTICE + _yaml(crd()),
        "charts/espha/files/esphadeployments.yaml": _NOTICE + _yaml(kept),
        "charts/espha/Chart.yaml": _NOTICE + _yaml(_chart()),
        "charts/espha/values.schema.json": _values_schema(),
        "charts/espha/values.yaml": _values(),
        "docs/reference/resource.md": reference(),
    }


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which some tools do not read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, width=100, allow_unicode=True)


def _chart() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "espha",
        "description": f"Operator for highly available event-stream processing ({KIND})",
        "type": "application",
        "version": RELEASE,
        "appVersion": RELEASE,
        # Since then the API server knows CEL rules for good; tested with 1.34.
        "kubeVersion": ">=1.29.0-0",
        "keywords": ["event stream processing", "high availability", "kafka", "operator"],
        "icon": f"data:image/svg+xml;base64,{base64.b64encode(_ICON).decode()}",
    }


def _values_schema() -> str:
    schema = Values.model_json_schema(by_alias=True)
    return (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=2)
        + "\n"
    )


def _values() -> str:
    values = Values().model_dump(by_alias=True, exclude={"global_", "enabled"})
    lines = [_NOTICE]
    for name, field in Values.model_fields.items():
        alias = field.alias or name
        if alias in values:
            lines += [f"\n# {field.description}\n", _yaml({alias: values[alias]})]
    return "".join(lines)


def main(root: Path) -> None:
    """Write all of it below the repository's root."""
    for path, text in generated().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
