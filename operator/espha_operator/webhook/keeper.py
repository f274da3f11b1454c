"""Keeps the webhook serving, and knows when it does not."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import aiohttp
import urllib3
from kubernetes.client.exceptions import ApiException

from espha_operator.api.images import Images
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.resources.meta import Object
from espha_operator.webhook import review
from espha_operator.webhook.registration import MissingObjectError, Registration, WebhookSettings
from espha_operator.webhook.server import HEALTH, Server

# The paths that the chart registers.
DEPLOYMENTS, CONFIG_MAPS = "/espha-deployments", "/config-maps"
# Seconds between two looks at the certificate and at who may be believed.
AGAIN = 60.0
SOON = 5.0
# Seconds that the server may take to answer its own pod.
ANSWER = 3.0
STARTING = "it is starting"
_LOG = logging.getLogger(__name__)


class Webhook:
    """The webhook as a whole.

    Attributes:
        trouble: why it does not serve, as part of a sentence; empty while it does.
        known: set when `trouble` tells more than that it is starting.
    """

    def __init__(
        self,
        cluster: Cluster,
        images: Images,
        settings: WebhookSettings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Set it up; `run` starts it."""
        self.trouble = STARTING
        self.known = asyncio.Event()
        self._registration, self._settings, self._clock = (
            Registration(cluster, settings),
            settings,
            clock,
        )

        def find(namespace: str, name: str) -> Object | None:
            return cluster.get("ConfigMap", namespace, name)

        self._server = Server(
            {
                DEPLOYMENTS: lambda request: review.deployment(request, images, find),
                CONFIG_MAPS: review.config_map,
            }
        )

    async def run(self, host: str | None = None) -> None:
        """Serve until cancelled; what goes wrong is tried again, and never ends the operator.

        Args:
            host: where to listen; all of the pod's addresses when None.
        """
        while True:
            # Without a certificate nobody can connect: first that, then the port.
            if await self._works(self._renew):
                await self._works(lambda: self._serve(host))
            await asyncio.sleep(SOON)

    async def _serve(self, host: str | None) -> None:
        async with self._server.serving(host, self._settings.port) as port:
            while True:
                # What cannot be renewed now still serves.
                if await self._works(lambda: self._look(host or "localhost", port)):
                    self._say("")
                await asyncio.sleep(SOON if self.trouble else AGAIN)

    async def _works(self, part: Callable[[], Awaitable[object]]) -> bool:
        try:
            await part()
        except ApiException as error:
            self._say(reason(error))
        except _EXPECTED as error:
            self._say(str(error) or type(error).__name__)
        except Exception as error:
            # A bug here must not take the operator along; it is seen in the conditions.
            _LOG.exception("webhook")
            self._say(f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    async def _look(self, host: str, port: int) -> None:
        await self._ask_itself(host, port, await self._renew())

    async def _renew(self) -> bytes:
        certificate = await asyncio.to_thread(self._registration.certificate, self._clock())
        # First believe the new authority, then show what it has signed.
        await asyncio.to_thread(self._registration.register, certificate.bundle)
        self._server.show(certificate)
        return certificate.bundle

    async def _ask_itself(self, host: str, port: int, bundle: bytes) -> None:
        """Connect as the API server does: with the name of the Service, believing the bundle."""
        context = ssl.create_default_context(cadata=bundle.decode())
        timeout = aiohttp.ClientTimeout(total=ANSWER)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(
                f"https://{host}:{port}{HEALTH}",
                ssl=context,
                server_hostname=self._settings.hosts[0],
            ) as answer,
        ):
            answer.raise_for_status()

    def _say(self, trouble: str) -> None:
        self.known.set()
        if trouble == self.trouble:
            return
        self.trouble = trouble
        if trouble:
            _LOG.warning("webhook: objects may be stored unchecked: %s", trouble)
        else:
            _LOG.info("webhook: serves on port %d", self._settings.port)


_EXPECTED = (
    OSError,
    urllib3.exceptions.HTTPError,
    aiohttp.ClientError,
    TimeoutError,
    MissingObjectError,
)
