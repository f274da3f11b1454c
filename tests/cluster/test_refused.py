"""What the API server refuses, and in which words."""

import os
from pathlib import Path

import pytest

from cluster import api_server, bad_resources

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "refused.md"


def answers(namespace: str) -> dict[tuple[str, str], list[str]]:
    found = {}
    for group, what, resource in bad_resources.every():
        causes = api_server.refused(resource, namespace)
        found[group, what] = [f"{field}: {said}" if field else said for field, said in causes]
    return found


def test_every_mistake_gets_the_answer_on_the_page(operator: str) -> None:
    """ESPHA_GOLDEN=write makes the page anew."""
    found = answers(operator)
    assert len(found) >= 60
    taken = [key for key, said in found.items() if not said]
    assert taken == []
    page = bad_resources.page(found)
    if os.environ.get("ESPHA_GOLDEN") == "write":
        PAGE.write_text(page)
    assert PAGE.read_text() == page
