"""The examples in the pages can be used as they are written: configurations, resources, models."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from espha.adapters.config import load
from espha.adapters.types import InputConfig, OutputConfig
from espha.reader import read_project
from espha_operator.api.spec import Spec
from unit.docs.markdown import name, pages

BASE: dict[str, Any] = {"model": {"configMap": {"name": "my-model"}}}


def blocks(language: str) -> list[Any]:
    """Return the blocks of code in a language, each with its page, as parameters of a test."""
    pattern = re.compile(rf"^( *)```{language}\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
    return [
        pytest.param(textwrap.dedent(found[2]), id=f"{name(page)}-{number}")
        for page in pages()
        if "reference/models" not in name(page) and "windows" not in name(page)
        for number, found in enumerate(pattern.finditer(page.read_text(encoding="utf-8")), 1)
    ]


@pytest.mark.parametrize("text", blocks("json"))
def test_a_configuration_of_an_adapter_can_be_loaded(text: str, tmp_path: Path) -> None:
    path = tmp_path / "adapter.json"
    path.write_text(text, encoding="utf-8")
    kind = OutputConfig if "result" in text else InputConfig
    assert load(path, kind).name in ("memory", "result")


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_part_of_a_resource_is_valid(text: str) -> None:
    part, *_ = yaml.safe_load_all(text)
    if isinstance(part, list):  # rules of alerts
        return
    if part.get("kind") == "NetworkPolicy" or "scrape_configs" in part:
        return
    assert Spec.model_validate({**BASE, **part["spec"]})


@pytest.mark.parametrize("text", blocks("xml"))
def test_a_model_can_be_read(text: str) -> None:
    assert read_project(text)
