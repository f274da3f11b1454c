"""The random resources of the cluster's tests: every rule's pattern has a text that follows it."""

from cluster import random_resources


def test_a_spec_can_be_made_of_every_seed() -> None:
    for seed in range(200):
        made = random_resources.spec(seed)
        assert made["engines"], seed
