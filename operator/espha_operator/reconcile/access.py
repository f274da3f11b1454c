"""Which of the namespaces to work in are open to the operator.

A Role goes with its namespace, and kopf ends the process where it may not watch. So whatever is
forbidden at the start is left out, and the process begins anew when it is allowed.
"""

import logging
import time
from typing import Protocol

from kubernetes.dynamic.exceptions import ForbiddenError, NotFoundError, ResourceNotFoundError

from espha_operator.api import KIND
from espha_operator.resources.meta import Object

# Seconds between two looks at what was forbidden.
AGAIN = 60.0
_LOG = logging.getLogger(__name__)


class Lister(Protocol):
    """Where deployments are listed."""

    def list_all(self, kind: str, namespace: str, selector: str) -> tuple[list[Object], str]:
        """Return the objects of a namespace, and the version of the list."""


def allowed(cluster: Lister, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the namespaces in which deployments may be listed."""
    return tuple(one for one in namespaces if _is_open(cluster, one))


def await_any(cluster: Lister, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """Wait until deployments may be listed in one of the namespaces or more; return these."""
    while True:
        time.sleep(AGAIN)
        try:
            found = allowed(cluster, namespaces)
        except Exception as error:  # the API server is away, say; the next look is the next try
            _LOG.warning("cannot look at namespaces that were forbidden: %s", error)
        else:
            if found:
                return found


def _is_open(cluster: Lister, namespace: str) -> bool:
    try:
        cluster.list_all(KIND, namespace, "")
    except ForbiddenError:
        return False
    except (NotFoundError, ResourceNotFoundError):
        pass  # without its kind the operator ends later, and says what to do
    return True
