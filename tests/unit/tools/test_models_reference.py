"""The page about models is what its parts and the code say."""

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


def _text(page: str) -> list[str]:
    """Return the lines outside of code."""
    parts = page.split("\n```")
    return [line for part in parts[::2] for line in part.splitlines()]
