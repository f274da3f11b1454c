"""What a process of a deployment is told by its environment (`ESPHA_…`).

Nobody else spells these names: who starts a process makes `Settings` and gives it their
`environment()`.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

PREFIX = "ESPHA_"
HEAP_MIB = 512
"""Usual largest heap of an engine's JVM."""
_LOCAL_MASTER = re.compile(r"local(\[([1-9][0-9]*|\*)\])?", re.ASCII)


class SettingsError(Exception):
    """The environment lacks a variable or holds a wrong one; the text names each."""


class Settings(BaseModel):
    """Settings that engines, adapters and their supervisors share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        description="The replica's own name; in Kubernetes, its pod's.",
    )
    bootstrap: str = Field(min_length=1, description="Kafka brokers, `host:port,…`.")
    zookeeper: str = Field("", description="ZooKeeper servers, `host:port,…`.")
    root: str = Field("", description="Znode under which the replicas stand for election.")
    session_ms: int = Field(
        800, ge=40, le=60_000, description="Time-out of the ZooKeeper session, ms."
    )
    failure_timeout_ms: int = Field(
        500,
        ge=200,
        le=60_000,
        description="Silence of a supervisor, of an active child or of Kafka after which it counts "
        "as failed, ms; longer where pauses are usual on this machine.",
    )
    model: Path = Field(Path("/etc/espha/model.xml"), description="The model's XML.")
    force_model: str = Field(
        "",
        pattern=r"^([0-9a-f]{12,64}@[0-9]{1,18})?$",
        description="`DIGEST@SEQUENCE`: the engine's model, when its digest begins so, may lead "
        "behind this order record, with empty state, although the log is of another model, which "
        "cannot commit anything there. It means nothing as soon as there is another order record.",
    )
    prefix: str = Field("", description="First part of all topic names; empty: the model's own.")
    deployment: str = Field(
        "default/espha",
        description="`<namespace>/<name>`, for the default prefix and for messages.",
    )
    http_host: str = Field(
        "0.0.0.0",  # noqa: S104 - a pod's own address is known only at run time
        description="Address on which the supervisor listens, and an adapter that is sent to.",
    )
    http_port: int = Field(
        8080, ge=0, le=65_535, description="Port on which the supervisor listens; 0: a free one."
    )
    heartbeat_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="Port on which other replicas hear that the supervisor lives; 0: a free one.",
    )
    lifeline_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="Port to which other replicas hold connections that end with the engine's "
        "process; 0: a free one.",
    )
    spark_master: str = Field(
        "local[1]",
        description="Spark master: `local`, `local[<threads>]` or `local[*]`; the engine and its "
        "Spark share one JVM.",
    )
    jvm_heap_mib: int = Field(
        HEAP_MIB,
        ge=480,
        le=31_744,
        description="Largest heap of the engine's JVM, MiB; Spark does not start with less than "
        "480. The state is not in it, but in the memory of the Python process beside it.",
    )
    jars: Path = Field(
        Path("/opt/espha/jars"), description="Folder with the engine's own jar and kafka-clients."
    )
    commit_interval_ms: int = Field(
        18,
        ge=0,
        le=200,
        description="Time from the begin of one commit to that of the next one, ms, at least, and "
        "longer behind a large batch; 200 at most: with less, output comes sooner; with more, "
        "brokers and engines have less to do.",
    )
    snapshots: str = Field(
        "",
        description="Folder for snapshots, on the engine's own volume; empty: none are written.",
    )
    snapshot_interval_s: float = Field(
        60, ge=1, le=86_400, description="Seconds between two snapshots of a standby."
    )
    snapshots_retained: int = Field(3, ge=1, le=100, description="How many snapshots are kept.")
    peers: str = Field(
        "",
        pattern=r"^([^,:\s]+:[0-9]{1,5}(,|$))*$",
        description="Supervisors of all replicas, `host:port,…`; a host may stand for many "
        "addresses.",
    )
    token: str = Field(
        "",
        repr=False,
        description="The deployment's secret, which others than this pod must show for a "
        "switchover, a snapshot, or a change of the model. It also protects the znodes. Empty: "
        "others cannot ask, but anybody may read snapshots, and the znodes are open.",
    )
    ack_log: Path | None = Field(
        None,
        description="File to which an engine appends a line for each acknowledged commit (for the "
        "fault campaign).",
    )

    @field_validator("spark_master")
    @classmethod
    def _local(cls, master: str) -> str:
        return local_master(master)

    def environment(self) -> dict[str, str]:
        """Return the variables that say the same; those that were not set are left out."""
        return {
            variable(name): _text(getattr(self, name))
            for name in type(self).model_fields
            if name in self.model_fields_set
        }


def local_master(master: str) -> str:
    """Return Spark's master, if an engine can run on it.

    With another one, or one that repeats what has failed, an engine would wait for ever: its rows
    go to Spark within one JVM, and once.

    Raises:
        ValueError: it cannot.
    """
    if not _LOCAL_MASTER.fullmatch(master):
        raise ValueError(
            f"Spark's master cannot be {master!r}; an engine shares one JVM with Spark: local, "
            "local[<threads>] or local[*]"
        )
    return master


def variable(setting: str) -> str:
    """Return the name of a setting's variable.

    Raises:
        KeyError: there is no such setting.
    """
    if setting not in Settings.model_fields:
        raise KeyError(setting)
    return PREFIX + setting.upper()


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings from the environment.

    Raises:
        SettingsError: one line for each variable that is missing or wrong.
    """
    names = {name: variable(name) for name in Settings.model_fields}
    told = {name: environment[key] for name, key in names.items() if key in environment}
    try:
        return Settings.model_validate(told)
    except ValidationError as error:
        lines = [f"{names[str(each['loc'][0])]}: {each['msg']}" for each in error.errors()]
        raise SettingsError("\n".join(lines)) from None


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
