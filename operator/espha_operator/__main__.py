"""`python -m espha_operator`: run the operator."""

import logging
import os
import socket
import sys

import kopf

import espha_operator.handlers  # noqa: F401  (the import registers the handlers)
from espha_operator.api.scope import Scope
from espha_operator.reconcile.access import allowed
from espha_operator.reconcile.cluster import Cluster

LIVENESS = "http://0.0.0.0:8080/healthz"


def main() -> None:
    """Run until a signal ends it."""
    level = os.environ.get("ESPHA_LOG_LEVEL", "info").upper()
    kopf.configure(verbose=level == "DEBUG")
    logging.getLogger().setLevel(level)
    # A line for each probe and each event would bury what matters.
    for name in ("aiohttp.access", "kopf.activities.probe", "kopf.objects"):
        logging.getLogger(name).setLevel(logging.WARNING)
    wanted = Scope().namespaces
    cluster = Cluster()
    namespaces = allowed(cluster, wanted)
    if wanted and not namespaces:
        sys.exit(f"The operator may not list deployments in any of: {', '.join(wanted)}")
    forbidden = tuple(one for one in wanted if one not in namespaces)
    kopf.run(
        registry=kopf.get_default_registry(),
        # Without it kopf asks for the user's name, and in a container nobody has given it one.
        identity=socket.gethostname(),
        clusterwide=not namespaces,
        namespaces=namespaces,
        memo=kopf.Memo(cluster=cluster, namespaces=namespaces, forbidden=forbidden),
        standalone=True,
        liveness_endpoint=LIVENESS,
    )


if __name__ == "__main__":
    main()
