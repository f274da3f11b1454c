"""kopf handlers: they start and stop the reconciliation of a deployment, and do nothing else."""

import asyncio
import logging
import time
from typing import Any

import kopf
import urllib3
from kubernetes.client.exceptions import ApiException

from espha_operator import webhook
from espha_operator.api import GROUP, PLURAL, VERSION
from espha_operator.api.images import Images
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.reconcile.pauses import Pauses
from espha_operator.reconcile.reconciler import Reconciler

# Seconds between two steps of a deployment.
INTERVAL = 1.0
# Seconds after which a deployment without a finished step means that the operator hangs.
STUCK = 90.0
# Seconds between two tries at most, when steps fail; a deployment that fails still steps.
LONGEST = 45.0
_LOG = logging.getLogger(__name__)


@kopf.on.startup()
async def startup(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Set kopf's settings, each with its reason."""
    # A watch that the network dropped silently is noticed after these many seconds.
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 30
    # The steps are events enough; only trouble becomes a Kubernetes Event.
    settings.posting.level = logging.WARNING
    # One operator a cluster, kept so by the Deployment's strategy Recreate.
    settings.peering.standalone = True
    # The CRD comes with the operator; to watch all CRDs would need a permission more.
    settings.scanning.disabled = True
    # Our own names, so that another kopf operator does not take our marks for its own.
    settings.persistence.finalizer = f"{GROUP}/operator"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    memo.cluster = await asyncio.to_thread(Cluster)
    memo.images = Images()
    memo.webhook = webhook.start(memo.images)
    memo.steps = {}


@kopf.daemon(GROUP, VERSION, PLURAL, initial_delay=0, cancellation_timeout=15)
async def keep(
    name: str,
    namespace: str,
    stopped: kopf.DaemonStopped,
    memo: kopf.Memo,
    **_: Any,
) -> None:
    """Reconcile one deployment every second until it is deleted."""
    reconciler = Reconciler(memo.cluster, namespace, name, memo.images)
    pauses = Pauses(INTERVAL, LONGEST)
    try:
        while not stopped:
            went_well = await _step(reconciler, f"{namespace}/{name}")
            memo.steps[namespace, name] = time.monotonic()
            await stopped.wait(pauses.after(went_well))
    finally:
        memo.steps.pop((namespace, name), None)


@kopf.on.probe(id="oldest_step_seconds")
async def alive(memo: kopf.Memo, **_: Any) -> float:
    """Return the seconds since the slowest deployment's last step; fail when too many."""
    age = time.monotonic() - min(memo.steps.values(), default=time.monotonic())
    if age > STUCK:
        raise kopf.PermanentError(f"no step of a deployment has ended for {age:.0f} s")
    return round(age, 1)


@kopf.on.probe(id="webhook")
async def webhook_state(memo: kopf.Memo, **_: Any) -> str:
    """Tell whether models are checked at admission; the operator lives on without."""
    if memo.webhook is None:
        return "off"
    return memo.webhook.trouble or "serves"


async def _step(reconciler: Reconciler, which: str) -> bool:
    """Do a step; say whether it went well. What goes wrong is said, and never ends the task."""
    try:
        await asyncio.to_thread(reconciler.step)
    except ApiException as error:
        _LOG.warning("%s: %s", which, reason(error))
    except (OSError, urllib3.exceptions.HTTPError) as error:
        _LOG.warning("%s: the API server does not answer: %s", which, error)
    except Exception as error:
        _LOG.exception("%s: a step has failed", which)
        await _tell(reconciler, which, error)
    else:
        return True
    return False


async def _tell(reconciler: Reconciler, which: str, error: Exception) -> None:
    try:
        await asyncio.to_thread(reconciler.failed, error)
    except Exception as second:
        _LOG.warning("%s: the status cannot say so: %s", which, second)
