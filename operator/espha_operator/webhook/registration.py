"""What the webhook keeps in the cluster: its certificate in a Secret, and who may be believed.

The chart makes both objects, empty: the operator may change these two and make no others.
"""

import base64
import copy
from dataclasses import dataclass
from datetime import datetime

from pydantic_settings import BaseSettings, SettingsConfigDict

from espha_operator.reconcile.cluster import Cluster
from espha_operator.resources.meta import Object
from espha_operator.webhook import certificates
from espha_operator.webhook.certificates import Certificate

CONFIGURATION = "ValidatingWebhookConfiguration"
_KEYS = {"bundle": "ca.crt", "chain": "tls.crt", "key": "tls.key"}


class WebhookSettings(BaseSettings):
    """Names of what the chart has made for the webhook (`ESPHA_WEBHOOK_SERVICE`, …).

    Attributes:
        service: of its Service; empty when there is no webhook.
        namespace: of the operator.
        secret: of the Secret with the certificate.
        configuration: of the ValidatingWebhookConfiguration.
        port: where the pod listens.
    """

    model_config = SettingsConfigDict(env_prefix="ESPHA_WEBHOOK_", frozen=True)

    service: str = ""
    namespace: str = ""
    secret: str = ""
    configuration: str = ""
    port: int = 9443

    @property
    def hosts(self) -> tuple[str, ...]:
        """DNS names of the Service; the API server asks for the first one."""
        return f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}"


class MissingObjectError(Exception):
    """An object of the chart has gone."""


@dataclass(frozen=True)
class Registration:
    """Keeps both objects right."""

    cluster: Cluster
    settings: WebhookSettings

    def certificate(self, now: datetime) -> Certificate:
        """Return the certificate in the Secret; put a new one there when it is not good any more.

        Raises:
            MissingObjectError: there is no such Secret.
            ApiException: the API server refuses.
        """
        where, name = self.settings.namespace, self.settings.secret
        found = self._found("Secret", where, name)
        data = found.get("data") or {}
        kept = Certificate(**{part: _decoded(data.get(key)) for part, key in _KEYS.items()})
        if not certificates.trouble(kept, self.settings.hosts, now):
            return kept
        made = certificates.make(self.settings.hosts, now, kept.bundle)
        texts = {key: _encoded(getattr(made, part)) for part, key in _KEYS.items()}
        # With the version that was read: of two operators one must take what the other has made.
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        self.cluster.patch("Secret", where, name, {"metadata": version, "data": texts})
        return made

    def register(self, bundle: bytes) -> None:
        """Have the API server believe a bundle's authorities.

        Raises:
            MissingObjectError: there is no such configuration.
            ApiException: the API server refuses.
        """
        name = self.settings.configuration
        found = self._found(CONFIGURATION, "", name)
        webhooks = copy.deepcopy(found.get("webhooks") or [])
        for webhook in webhooks:
            webhook["clientConfig"]["caBundle"] = _encoded(bundle)
        if webhooks != found.get("webhooks"):
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            self.cluster.patch(CONFIGURATION, "", name, {"metadata": version, "webhooks": webhooks})

    def _found(self, kind: str, namespace: str, name: str) -> Object:
        found = self.cluster.get(kind, namespace, name)
        if found is None:
            raise MissingObjectError(f"there is no {kind} {name}; `helm upgrade` brings it back")
        return found


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "")
    except ValueError:
        return b""
