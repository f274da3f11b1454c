"""Golden files: what builders make, as YAML that people read."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

GOLDEN = Path(__file__).parent / "golden"


class _Readable(yaml.SafeDumper):
    """YAML without anchors, and with texts of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


@pytest.fixture
def golden() -> Callable[[str, list[dict[str, Any]]], None]:
    """Compares objects with a golden file; ESPHA_GOLDEN=write makes the file anew."""

    def compare(name: str, objects: list[dict[str, Any]]) -> None:
        path = GOLDEN / f"{name}.yaml"
        if os.environ.get("ESPHA_GOLDEN") == "write":
            path.write_text(yaml.dump_all(objects, Dumper=_Readable, sort_keys=False, width=100))
        assert objects == list(yaml.safe_load_all(path.read_text()))

    return compare
