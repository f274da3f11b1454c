"""The reference of models is what the pages beside the window types and the code say."""

from pathlib import Path

import pytest

from espha.windows.types import WINDOWS
from tools.docs.models import FOLDER, tables, window_pages
from unit.docs.markdown import lines, name

PAGES = window_pages()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_page_of_a_window_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run .venv/bin/python -m tools.docs"


def test_there_is_no_page_of_a_window_that_is_gone() -> None:
    assert set(FOLDER.glob("window-*.md")) == set(PAGES)


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=name)
def test_a_page_has_one_title_at_its_head(page: Path) -> None:
    titles = [line for code, line in lines(page) if not code and line.startswith("# ")]
    assert len(titles) == 1
    assert page.read_text(encoding="utf-8").startswith(titles[0])


def test_the_tables_have_every_window() -> None:
    made = tables()
    assert [window for window in WINDOWS if f"| `window-{window}` |" not in made] == []
