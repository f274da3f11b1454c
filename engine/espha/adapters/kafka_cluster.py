"""A topic of a Kafka cluster that is not the deployment's own: where it is, and how to get in."""

import os
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from espha.adapters.config import Part
from espha.adapters.secrets import needed, secret

_SERVER: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?:[0-9]{1,5}"
SERVERS: Final = f"^{_SERVER}(,{_SERVER})*$"
TOPIC: Final = r"^[A-Za-z0-9._-]{1,249}$"

_USER, _PASSWORD = "REMOTE_KAFKA_USERNAME", "REMOTE_KAFKA_PASSWORD"
_TLS: Final = {
    "ssl.ca.pem": "REMOTE_KAFKA_CA",
    "ssl.certificate.pem": "REMOTE_KAFKA_CERTIFICATE",
    "ssl.key.pem": "REMOTE_KAFKA_KEY",
    "ssl.key.password": "REMOTE_KAFKA_KEY_PASSWORD",
}
"""Settings of the client that come from the environment, and the variables; all but the last one
are texts of PEM."""


class KafkaTopic(Part):
    """A topic of another cluster."""

    servers: Annotated[str, StringConstraints(pattern=SERVERS, max_length=1000)] = Field(
        description="Brokers to ask first, `HOST:PORT,…`."
    )
    topic: Annotated[str, StringConstraints(pattern=TOPIC)] = Field(description="The topic.")
    tls: bool = Field(
        False,
        description="Connections are encrypted (TLS). The PEM of authorities to trust is in "
        "REMOTE_KAFKA_CA (without it, those of the system), a certificate of the client in "
        "REMOTE_KAFKA_CERTIFICATE and REMOTE_KAFKA_KEY.",
    )
    sasl: Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "none",
        description="How the client says who it is; user and password are in "
        "REMOTE_KAFKA_USERNAME and REMOTE_KAFKA_PASSWORD.",
    )

    @property
    def name(self) -> str:
        """The topic, as a user knows it."""
        return f"topic {self.topic} of {self.servers}"

    def client_settings(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the settings of clients beside the servers; they hold secrets, never print them.

        Raises:
            ConfigError: a secret is missing; the text says which.
        """
        protocol = ("sasl_" if self.sasl != "none" else "") + ("ssl" if self.tls else "plaintext")
        settings = {"security.protocol": protocol}
        if self.sasl != "none":
            settings["sasl.mechanism"] = self.sasl
            settings["sasl.username"] = needed(_USER, f"sasl {self.sasl}", environment)
            settings["sasl.password"] = needed(_PASSWORD, f"sasl {self.sasl}", environment)
        if self.tls:
            told = {name: secret(variable, environment) for name, variable in _TLS.items()}
            settings |= {name: value for name, value in told.items() if value}
        return settings
