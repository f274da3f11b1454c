"""`python -m espha_operator`: run the operator."""

import logging
import os
import socket

import kopf

import espha_operator.handlers  # noqa: F401  (the import registers the handlers)
from espha_operator.api.scope import Scope

LIVENESS = "http://0.0.0.0:8080/healthz"


def main() -> None:
    """Run until a signal ends it."""
    level = os.environ.get("ESPHA_LOG_LEVEL", "info").upper()
    kopf.configure(verbose=level == "DEBUG")
    logging.getLogger().setLevel(level)
    # A line for each probe and each event would bury what matters.
    for name in ("aiohttp.access", "kopf.activities.probe", "kopf.objects"):
        logging.getLogger(name).setLevel(logging.WARNING)
    scope = Scope()
    kopf.run(
        registry=kopf.get_default_registry(),
        # Without it kopf asks for the user's name, and in a container nobody has given it one.
        identity=socket.gethostname(),
        clusterwide=not scope.namespaces,
        namespaces=scope.namespaces,
        standalone=True,
        liveness_endpoint=LIVENESS,
    )


if __name__ == "__main__":
    main()
