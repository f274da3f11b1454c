"""`python -m espha_operator.api`: write everything that is made of the models again."""

import sys
from pathlib import Path
from typing import Any

import yaml

from espha_operator.api import chart
from espha_operator.api.crd import crd
from espha_operator.api.reference import reference

_NOTICE = "# Made of operator/espha_operator/api by `python -m espha_operator.api`; do not edit.\n"


def generated() -> dict[str, str]:
    """Return the text of each file, by its path relative to the repository."""
    # Helm must not delete the CRD, and with it every deployment, when the chart is uninstalled.
    kept = crd({"helm.sh/resource-policy": "keep"})
    return {
        "crds/esphadeployments.yaml": _NOTICE + _yaml(crd()),
        "charts/espha/files/esphadeployments.yaml": _NOTICE + _yaml(kept),
        "charts/espha/Chart.yaml": _NOTICE + _yaml(chart.chart()),
        "charts/espha/values.schema.json": chart.schema(),
        "charts/espha/values.yaml": _values(),
        "charts/espha/README.md": chart.readme(),
        "docs/reference/resource.md": reference(),
    }


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which some tools do not read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(value: object) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, width=100, allow_unicode=True)


def _values() -> str:
    parts = (
        f"\n# {text}\n{_yaml({name: value})}" for name, (text, value) in chart.values().items()
    )
    return _NOTICE + "".join(parts)


def main(root: Path) -> None:
    """Write all of it below the repository's root."""
    for path, text in generated().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
