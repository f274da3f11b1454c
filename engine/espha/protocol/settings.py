"""What a process of a deployment is told by its environment (`ESPHA_…`)."""

import socket
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict


class SettingsError(Exception):
    """The environment lacks a variable or holds a wrong one; the text names each."""


class Settings(BaseSettings):
    """Settings that engines, adapters and their supervisors share; see docs/architecture.md."""

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    name: str = Field(default_factory=socket.gethostname, min_length=1)
    bootstrap: str = Field(min_length=1)
    zookeeper: str = ""
    root: str = ""
    session_ms: int = Field(default=800, ge=200, le=60_000)
    silent_ms: int = Field(default=500, ge=200, le=60_000)
    model: Path = Path("/etc/espha/model.xml")
    prefix: str = ""
    deployment: str = "default/espha"
    http_host: str = "0.0.0.0"  # noqa: S104 - a pod's own address is known only at run time
    http_port: int = Field(default=8080, ge=0, le=65_535)
    spark_master: str = "local[1]"
    jars: Path = Path("/opt/espha/jars")
    snapshots: str = ""
    snapshot_s: float = Field(default=60, ge=1, le=86_400)
    snapshots_kept: int = Field(default=3, ge=1, le=100)
    peers: str = Field(default="", pattern=r"^([^,:\s]+:[0-9]{1,5}(,|$))*$")
    token: str = Field(default="", repr=False)
    ack_log: Path | None = None


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        SettingsError: one line for each variable that is missing or wrong.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"ESPHA_{str(problem['loc'][0]).upper()}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise SettingsError("\n".join(lines)) from None
