"""The admission webhook: bad models are refused when somebody applies them.

It is a help for people, no protection: the operator checks every model again before it starts
anything. So when the webhook does not work, everything is let through, and conditions say so.
"""

import asyncio
import contextlib

from espha_operator.api.images import Images
from espha_operator.reconcile.cluster import Cluster
from espha_operator.webhook.keeper import Webhook
from espha_operator.webhook.registration import WebhookSettings

__all__ = ["Webhook", "start"]
# Seconds for which a start waits until it is known whether the webhook serves.
PATIENCE = 10.0
_TASKS: set[asyncio.Task[None]] = set()


async def stop() -> None:
    """End all that `start` has started."""
    tasks = list(_TASKS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    _TASKS.clear()


async def start(images: Images) -> Webhook | None:
    """Start the webhook in the running event loop, if the chart has made what it needs.

    It has a connection to the API server of its own: what it writes is the operator's own, and
    needs no leave from what guards deployments.
    """
    settings = WebhookSettings()
    if not settings.service:
        return None
    webhook = Webhook(await asyncio.to_thread(Cluster), images, settings)
    # The event loop itself keeps no hold of its tasks.
    _TASKS.add(asyncio.create_task(webhook.run(), name="webhook"))
    # So that conditions do not change at each start of the operator.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(webhook.known.wait(), PATIENCE)
    return webhook
