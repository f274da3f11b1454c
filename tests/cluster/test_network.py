"""The cluster's network: nobody answers for pods and Services that are not there."""

import pytest

from tools.offline_cluster import clients

pytestmark = pytest.mark.cluster

NOBODY = ("10.244.0.250", "10.244.250.250", "10.96.250.250")
"""Addresses that neither a pod nor a Service has, in the ranges of both."""
TRY = """
import socket, sys
for address in sys.argv[1:]:
    try:
        socket.create_connection((address, 9093), timeout=3).close()
        print(address)
    except OSError:
        pass
"""


def test_nobody_answers_for_pods_and_services_that_are_gone(operator: str) -> None:
    """A broker takes the answer of a proxy for one of 1.2 GB, and ends for lack of memory."""
    answered = clients.kubectl(
        "-n", operator, "exec", "deployment/espha-operator", "--", "python3", "-c", TRY, *NOBODY
    )
    assert answered.split() == []
