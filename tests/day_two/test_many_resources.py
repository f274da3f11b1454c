"""The same as in `cluster.test_random_resources`, ten times as long."""

import pytest

from cluster import made_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_all_objects_of_200_random_resources_are_valid(operator: str) -> None:
    made_of.check(operator, count=200)
