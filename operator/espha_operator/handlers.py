"""kopf handlers: they tell the fleet which deployments there are, and do nothing else.

No handler needs a finalizer: everything that a deployment is made of goes by owner reference, also
when no operator is there. kopf takes off the one that older versions have put on.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from functools import partial
from typing import Any

import kopf

from espha_operator import metrics, webhook
from espha_operator.api import GROUP, KIND, PLURAL, VERSION
from espha_operator.api.images import Images
from espha_operator.api.scope import Scope
from espha_operator.reconcile import access
from espha_operator.reconcile.cluster import MissingKindError
from espha_operator.reconcile.fleet import Fleet, Which
from espha_operator.reconcile.lease import Leaseholder
from espha_operator.reconcile.order_logs import OrderLogs
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.reconcile.tokens import Tokens
from espha_operator.reconcile.upgrades import Upgrader
from espha_operator.reconcile.watch import await_listed

# Seconds between two words about something that goes on.
SAY_AGAIN = 30
_LOG = logging.getLogger(__name__)


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def startup(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Set kopf's settings, each with its reason, and prepare everything that handlers need."""
    # A watch that the network dropped silently is noticed after these many seconds.
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 30
    # Only trouble becomes a Kubernetes Event.
    settings.posting.level = logging.WARNING
    # Leases keep several operators apart.
    settings.peering.standalone = True
    # The CRD comes with the operator; to watch all CRDs would need a permission more.
    settings.scanning.disabled = True
    # The one of older versions, to be taken off.
    settings.persistence.finalizer = f"{GROUP}/operator"
    await asyncio.to_thread(_prepare, memo)
    memo.webhook = await webhook.start(memo.images)
    memo.ends = contextlib.AsyncExitStack()
    port = Scope().metrics_port
    if port:
        store, requests = memo.cluster.store, memo.cluster.requests
        told = metrics.OperatorCollector(memo.fleet, memo.leases, store, requests)
        await memo.ends.enter_async_context(metrics.serving(metrics.registry(told), port))


@kopf.on.cleanup()
async def cleanup(memo: kopf.Memo, **_: Any) -> None:
    """End with open hands: the next operator need not wait."""
    if "fleet" in memo:
        memo.fleet.stop()
        await asyncio.to_thread(memo.leases.release)
    await webhook.stop()
    if "ends" in memo:
        await memo.ends.aclose()


@kopf.on.event(GROUP, VERSION, PLURAL)
async def event(type: str | None, body: kopf.Body, memo: kopf.Memo, **_: Any) -> None:
    """Take in a deployment, or let it go."""
    resource = dict(body)  # kopf's own is a view of plain dicts
    meta = resource["metadata"]
    which = (meta["namespace"], meta["name"], meta["uid"])
    if type == "DELETED":
        _forget(memo, which)
        await asyncio.to_thread(_release, memo)
        return
    memo.cluster.store.put(KIND, resource)
    memo.fleet.add(which, later=type is None)
    # Behind it: a namespace without deployments may lose its lease at any time.
    memo.leases.want(meta["namespace"])


def gone(memo: kopf.Memo, which: Which) -> None:
    """Let a deployment go that kopf has not told of: it went in a gap between two watches."""
    _LOG.info("%s/%s, uid %s, has gone: it is kept no more", *which)
    _forget(memo, which)
    _release(memo)


def _forget(memo: kopf.Memo, which: Which) -> None:
    meta = dict(zip(("namespace", "name", "uid"), which, strict=True))
    memo.cluster.store.remove(KIND, {"metadata": meta})
    memo.fleet.remove(which)
    # Behind the store, in which a step that claims looks whether it is still there.
    memo.order_logs.drop(meta["uid"])


def _release(memo: kopf.Memo) -> None:
    memo.leases.keep_only(lambda: memo.fleet.namespaces)


@kopf.on.probe(id="deployments")
async def deployments(memo: kopf.Memo, **_: Any) -> dict[str, Any]:
    """Tell how the deployments do; fail when none of them gets on.

    One that is stuck is said, and harms nobody else; when all are, it is the operator.
    """
    ages, stuck = memo.fleet.ages(), memo.fleet.stuck()
    for which, age in stuck.items():
        _LOG.warning("%s: no step has ended for %.0f s", which, age)
    if ages and len(stuck) == len(ages):
        raise kopf.PermanentError("no step of any deployment has ended lately")
    return {
        "kept": len(ages),
        "slowest_step_seconds": round(max(ages.values(), default=0.0), 1),
        "stuck": sorted(stuck),
        "waiting": memo.leases.waiting(),
        "forbidden": memo.forbidden,
    }


@kopf.on.probe(id="webhook")
async def webhook_state(memo: kopf.Memo, **_: Any) -> str:
    """Tell whether models are checked at admission; the operator lives on without."""
    if memo.webhook is None:
        return "off"
    return memo.webhook.trouble or "serves"


def _prepare(memo: kopf.Memo) -> None:
    scope, cluster = Scope(), memo.cluster
    try:
        cluster.require_kind(memo.namespaces)
    except MissingKindError as error:
        raise kopf.PermanentError(str(error)) from None
    memo.leases = Leaseholder(cluster, scope.identity, _end)
    cluster.guard(memo.leases.require)
    await_listed(cluster.watch(memo.namespaces), SAY_AGAIN, _LOG.warning)
    memo.order_logs = OrderLogs()
    for namespace in memo.namespaces or ("",):
        memo.order_logs.expect(cluster.list_all(KIND, namespace, "")[0])
    tokens = Tokens(cluster, scope.namespace)
    images = memo.images = Images()
    upgrader = Upgrader(images)

    def reconciler(namespace: str, name: str, uid: str) -> Reconciler:
        return Reconciler(
            cluster,
            namespace,
            name,
            images,
            uid=uid,
            tokens=tokens,
            order_logs=memo.order_logs,
            upgrader=upgrader,
            gone=partial(gone, memo, (namespace, name, uid)),
            webhook=lambda: memo.webhook and memo.webhook.trouble,
        )

    memo.fleet = Fleet(reconciler, memo.leases.holds)
    if memo.forbidden:
        _LOG.error("may not list deployments in: %s; left out", ", ".join(memo.forbidden))
        threading.Thread(target=end_when_open, args=(memo,), name="access", daemon=True).start()


def end_when_open(memo: kopf.Memo) -> None:
    """End the process orderly when it may work in more namespaces: it is started again then."""
    found = access.await_any(memo.cluster, memo.forbidden)
    _LOG.warning("may list deployments now in: %s; begins anew with them", ", ".join(found))
    os.kill(os.getpid(), signal.SIGTERM)


def _end(why: str) -> None:
    """End the process at once: threads under way must not write any more."""
    _LOG.critical("%s: this operator ends", why)
    logging.shutdown()
    os._exit(1)
