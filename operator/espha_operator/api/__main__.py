"""`python -m espha_operator.api`: write everything that is made of the models again."""

import json
import sys
from pathlib import Path

import yaml

from espha_operator.api.crd import crd
from espha_operator.api.names import KIND, RELEASE
from espha_operator.api.reference import reference
from espha_operator.api.values import Values

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


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=100, allow_unicode=True)


def _chart() -> dict[str, str]:
    return {
        "apiVersion": "v2",
        "name": "espha",
        "description": f"Operator for highly available event-stream processing ({KIND})",
        "type": "application",
        "version": RELEASE,
        "appVersion": RELEASE,
    }


def _values_schema() -> str:
    schema = Values.model_json_schema(by_alias=True)
    return (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=2)
        + "\n"
    )


def _values() -> str:
    values = Values().model_dump(by_alias=True, exclude={"global_"})
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
