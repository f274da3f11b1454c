"""Every link and anchor of every Markdown file leads somewhere; every path named exists."""

import re
from pathlib import Path

import pytest
import yaml

from tools.docs.models import navigation
from unit.docs.markdown import ROOT, anchors, inline_code, links, name, pages

_PATH = re.compile(
    r"^(charts|crds|docs|engine|images|manifests|operator|tests|tools)/[\w./-]*[\w/]$"
)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_resolves(page: Path) -> None:
    assert [target for target in links(page) if not _resolves(page, target)] == []


def _resolves(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or anchor in anchors(file)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    named = [text for text in inline_code(page) if _PATH.match(text)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = yaml.load(re.sub(r"!!python/name:\S+", "''", text), yaml.SafeLoader)
    docs = ROOT / "docs"
    assert set(_leaves(navigation(settings["nav"]))) == {
        str(path.relative_to(docs)) for path in docs.rglob("*.md")
    }


def _leaves(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [leaf for part in parts for leaf in _leaves(part)]
