"""The same as in `cluster.test_random_resources`, ten times as long."""

from collections.abc import Iterator

import pytest

from cluster import made_of, spaces

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def restricted(operator: str) -> Iterator[str]:
    """A namespace in which Kubernetes itself refuses pods that are not restricted."""
    with spaces.made("random", spaces.RESTRICTED) as name:
        yield name


def test_all_objects_of_200_random_resources_are_valid(restricted: str) -> None:
    made_of.check(restricted, count=200)
