"""The operator's own settings: where it works, and who it is."""

import socket

from pydantic_settings import BaseSettings, SettingsConfigDict


class Scope(BaseSettings):
    """Where the operator works, from the environment (`ESPHA_WATCH_NAMESPACES`, …)."""

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    watch_namespaces: str = ""
    """Namespaces, separated by commas; empty: all of them."""
    namespace: str = "default"
    """The operator's own."""
    metrics_port: int = 0
    """Where Prometheus may ask; 0: nowhere."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces to work in; none: all of them."""
        listed = (name.strip() for name in self.watch_namespaces.split(","))
        return tuple(sorted({name for name in listed if name}))

    @property
    def identity(self) -> str:
        """Return the operator's name among others: a pod's name, which its restarts keep."""
        return f"{self.namespace}/{socket.gethostname()}"
