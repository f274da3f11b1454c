"""What the API server takes of a resource, it takes of everything that is made of it."""

import pytest

from cluster import made_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_all_objects_of_a_valid_resource_are_valid(operator: str) -> None:
    """Pods, too, in a namespace that takes restricted ones only; 200 in `make test-day-two`."""
    made_of.check(operator, count=30)
