"""The page about models is what its parts and the code say."""

import re

import pytest

from espha.windows.types import WINDOWS
from tools import models_reference


def test_the_page_is_up_to_date() -> None:
    written = models_reference.PAGE.read_text(encoding="utf-8")
    assert written == models_reference.page(), "run python -m tools.models_reference"


def test_it_has_every_window_and_one_title() -> None:
    page = models_reference.page()
    for name in WINDOWS:
        assert f"| `window-{name}` |" in page
    titles = [line for line in _text(page) if line.startswith("# ")]
    assert titles == ["# Models"]


def test_every_general_page_is_in_the_list() -> None:
    written = {path.stem for path in models_reference.PARTS.glob("*.md")}
    assert written == {*models_reference.BEFORE, *models_reference.AFTER}


@pytest.mark.parametrize("page", list(models_reference.pages()), ids=lambda page: page.name)
def test_a_page_has_one_title_at_its_head(page: models_reference.Page) -> None:
    titles = [line for line in _text(page.markdown) if line.startswith("# ")]
    assert titles == [f"# {page.title}"]
    assert page.markdown.startswith(titles[0])


def test_links_between_pages_find_their_page() -> None:
    pages = {page.name: page.markdown for page in models_reference.linked(models_reference.pages())}
    found = [name for text in pages.values() for name in re.findall(r"\]\(([\w-]+)\.md\)", text)]
    assert "scripts" in found
    assert set(found) <= set(pages)


def _text(page: str) -> list[str]:
    """Return the lines outside of code."""
    parts = page.split("\n```")
    return [line for part in parts[::2] for line in part.splitlines()]
