"""A broker of MQTT 5: where it is, and how to get in."""

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from espha.adapters.config import PORT, ConfigError, Part
from espha.adapters.secrets import needed, secret

BROKER: Final = rf"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?:{PORT}$"
CLIENT_ID: Final = r"^[A-Za-z0-9._:/-]+$"
TOPIC: Final = r"^[^+#]+$"
FILTER: Final = r"^(#|[^+#/]+|\+|(\+|[^+#/]*)(/(\+|[^+#/]*))*(/(\+|[^+#/]*|#)))$"
PROPERTY: Final = r"^[A-Za-z0-9._-]+$"
ID_PROPERTY: Final = "espha-id"

_USER, _PASSWORD = "MQTT_USERNAME", "MQTT_PASSWORD"
_CA, _CERTIFICATE, _KEY = "MQTT_CA", "MQTT_CERTIFICATE", "MQTT_KEY"
_KEY_PASSWORD = "MQTT_KEY_PASSWORD"  # noqa: S105 - the name of a variable


class MqttBroker(Part):
    """A broker of MQTT 5."""

    broker: Annotated[str, StringConstraints(pattern=BROKER, max_length=260)] = Field(
        description="The broker, `HOST:PORT`. User and password are in MQTT_USERNAME and "
        "MQTT_PASSWORD."
    )
    tls: bool = Field(
        False,
        description="Connections are encrypted (TLS). The PEM of authorities to trust is in "
        "MQTT_CA (without it, those of the system), a certificate of the client in "
        "MQTT_CERTIFICATE and MQTT_KEY.",
    )
    client_id: Annotated[str, StringConstraints(pattern=CLIENT_ID, max_length=128)] | None = Field(
        None,
        description="Who the adapter is for the broker; no other client may have this name. "
        "Without it, one is made of the deployment's prefix and the adapter's name.",
    )
    id_property: Annotated[str, StringConstraints(pattern=PROPERTY, max_length=100)] = Field(
        ID_PROPERTY, description="The user property that holds the id of a message."
    )
    keep_alive_s: int = Field(
        30,
        ge=5,
        le=3600,
        description="Seconds without a word after which both sides ask whether the other one is "
        "there.",
    )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.broker.rpartition(":")
        return host, int(port)

    @staticmethod
    def login(environment: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
        """Return user and password; None: anybody may come.

        Raises:
            ConfigError: a file that is named cannot be read.
        """
        user = secret(_USER, environment)
        return (user, secret(_PASSWORD, environment)) if user else None

    def security(self, environment: Mapping[str, str] = os.environ) -> ssl.SSLContext | None:
        """Return how connections are encrypted; None: they are not.

        Raises:
            ConfigError: a secret is missing, or is no PEM; the text says which.
        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cadata=secret(_CA, environment) or None)
        except (ssl.SSLError, ValueError):
            raise ConfigError(f"{_CA} is no certificate in PEM") from None
        certificate = secret(_CERTIFICATE, environment)
        if certificate:
            key = needed(_KEY, _CERTIFICATE, environment)
            _identify(context, f"{certificate}\n{key}\n", secret(_KEY_PASSWORD, environment))
        return context


def _identify(context: ssl.SSLContext, pem: str, password: str) -> None:
    """Give a client its certificate: only files can be loaded."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "client.pem"
        file.touch(0o600)
        file.write_text(pem)
        try:
            context.load_cert_chain(file, password=password)
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"{_CERTIFICATE} and {_KEY} are no certificate and its key in PEM, or "
                f"{_KEY_PASSWORD} is another one"
            ) from None
