"""Properties of connectors of sockets, topics and timers, as settings of our adapters."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from espha.adapters.config import Direction
from espha.adapters.findings import CONNECTION, DATES, SNAPSHOT, Findings, check_names
from espha.adapters.translated_files import COLUMNS
from espha.connectors.files import (
    KAFKA_SOURCE_PROPERTIES,
    SOURCE_PROPERTIES,
    TARGET_PROPERTIES,
    flag_property,
    layout_of,
    whole_property,
)
from espha.connectors.timers import TIMER_PROPERTIES, timer
from espha.records.layout import CsvColumns

Read = Callable[[Path], str]
"""Reads a text file; raises OSError."""


class Task(NamedTuple):
    """What is translated.

    Attributes:
        direction: of the connector.
        values: its properties, by name.
        read: for files that properties name.
        found: takes what is different, and what cannot be done.
    """

    direction: Direction
    values: Mapping[str, str]
    read: Read
    found: Findings

    def text(self, name: str) -> str:
        """Return a property; empty: it is not there."""
        return self.values.get(name, "").strip()

    def needed(self, name: str) -> str:
        """Return a property that cannot be missing."""
        if not self.text(name):
            self.found.refuse(f"property {name!r} is missing")
        return self.text(name)

    def check(self, own: frozenset[str], idle: Mapping[str, str]) -> None:
        """Name each property that is not known, or has no effect (and why)."""
        for name, why in idle.items():
            if name in self.values:
                self.found.note(f"{name} has no effect: {why}")
        common = _FORMATS | (_SOURCES if self.direction == "pub" else _TARGETS)
        check_names(self.values, own | idle.keys() | common | CONNECTION, self.found)


_FORMATS: Final = frozenset({"protofile", "protomsg"})
_SOURCES: Final = KAFKA_SOURCE_PROPERTIES | {"maxevents"}
_TARGETS: Final = frozenset({"snapshot", "collapse", "rmretdel", "dateformat"})
_SOCKET_IDLE: Final = {
    "growinginputfile": "a socket ends when it is closed",
    "rate": "rows pass as fast as they come",
}
_HOT: Final = "replicas are those of the deployment"
_SEVERAL: Final = "each row is a message"
_KAFKA_IDLE: Final = {
    "urlhostport": "topics have the names that are given",
    "kafkaconsumergroupid": "the adapter keeps its own position",
    "useclientmsgid": "message ids are those of the rows",
    "numbufferedmsgs": _HOT,
    "hotfailover": _HOT,
    "zookeeperhostport": _HOT,
    "csvmsgperevent": _SEVERAL,
    "csvmsgpereventblock": _SEVERAL,
}
_LOGIN: Final = "user and password are given in MQTT_USERNAME and MQTT_PASSWORD"
_CERTIFICATES: Final = "certificates and keys are given in MQTT_CA, MQTT_CERTIFICATE and MQTT_KEY"
_AGAIN: Final = "messages are sent until they are acknowledged"
_SESSION: Final = "the broker keeps what is not acknowledged, so nothing is lost"
_MQTT: Final = frozenset(
    {
        "mqtthost", "mqttport", "mqtttopic", "mqttqos", "mqttmsgtype", "mqttclientid", "mqttssl",
        "mqttkeepaliveinterval", "mqttretainmsg", "mqttacceptretainedmsg", "csvincludeschema",
    }
)  # fmt: skip
_MQTT_IDLE: Final = {
    "mqttuserid": _LOGIN,
    "mqttpassword": _LOGIN,
    "mqttpasswordencrypted": _LOGIN,
    "mqttsslcafile": _CERTIFICATES,
    "mqttsslcapath": _CERTIFICATES,
    "mqttsslcertfile": _CERTIFICATES,
    "mqttsslkeyfile": _CERTIFICATES,
    "mqttsslpassword": _CERTIFICATES,
    "mqttcleansession": _SESSION,
    "mqttdonotcleansession": _SESSION,
    "mqttmsgmaxdeliveryattempts": _AGAIN,
    "mqttmsgdelaydeliveryattempts": _AGAIN,
    "mqttmsgwaitbeforeretry": _AGAIN,
    "mqttmaxinflightmsg": "as many messages are under way as the broker takes",
    "csvmsgperevent": _SEVERAL,
    "csvmsgpereventblock": _SEVERAL,
}
_ENCRYPTED: Final = ("security.", "sasl.", "ssl.")
_STARTS: Final = {"": "first", "smallest": "first", "largest": "last"}


def socket_settings(task: Task) -> dict[str, Any]:
    """Return the settings of a socket: `fsname` is HOST:PORT or :PORT; or `host` and `port`."""
    own = SOURCE_PROPERTIES if task.direction == "pub" else TARGET_PROPERTIES
    task.check(own | {"host", "port", "ids"}, _SOCKET_IDLE)
    for name in ("header", "repeatcount"):
        if task.text(name).lower() not in {"", "0", "false"}:
            task.found.refuse(f"{name} is for files, not for sockets")
    host, _, port = task.text("fsname").rpartition(":")
    host, port = task.text("host") or host, task.text("port") or port
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        task.found.refuse("there is no port of 65535 at most: give port, or fsname HOST:PORT")
        return {}
    where = {"connect": f"{host}:{port}"} if host else {"port": int(port)}
    numbered = {"ids": True} if flag_property(task.values, "ids") else {}
    return {**where, **_format(task, "fstype"), **numbered}


def http_settings(task: Task) -> dict[str, Any]:
    """Return the settings of HTTP: `port` of what takes requests, `address` of what is sent to."""
    name = "port" if task.direction == "pub" else "address"
    task.check(frozenset({name, "fstype"}), {})
    return {name: task.needed(name), **_format(task, "fstype")}


def kafka_settings(task: Task) -> dict[str, Any]:
    """Return the settings of a topic of another cluster."""
    own = {"kafkahostport", "kafkatopic", "kafkatype", "kafkapartition", "kafkainitialoffset"}
    configured = {"kafkaglobalconfig", "kafkatopicconfig"}
    task.check(frozenset(own | configured | {"csvincludeschema"}), _KAFKA_IDLE)
    _no_schema_lines(task)
    for name in configured & task.values.keys():
        if any(word in task.text(name) for word in _ENCRYPTED):
            task.found.refuse(f"{name}: configure the adapter with tls and sasl instead")
        else:
            task.found.note(f"{name} has no effect: clients have settings of their own")
    if task.text("kafkapartition") not in {"", "0"}:
        task.found.refuse("kafkapartition cannot be followed: all partitions are used")
    offset = task.text("kafkainitialoffset").lower()
    if offset not in _STARTS:
        task.found.refuse("kafkainitialoffset has to be smallest or largest")
    start = {"start": "last"} if _STARTS.get(offset) == "last" and task.direction == "pub" else {}
    place = {"servers": task.needed("kafkahostport"), "topic": task.needed("kafkatopic")}
    return {**place, **start, **_format(task, "kafkatype")}


def mqtt_settings(task: Task) -> dict[str, Any]:
    """Return the settings of topics of MQTT."""
    task.check(_MQTT, _MQTT_IDLE)
    _no_schema_lines(task)
    port = whole_property(task.values, "mqttport", 1883)
    kept = whole_property(task.values, "mqttkeepaliveinterval", 0)
    flags = {"tls": "mqttssl"}
    flags |= {"retained": "mqttacceptretainedmsg"} if task.direction == "pub" else {}
    flags |= {"retain": "mqttretainmsg"} if task.direction == "sub" else {}
    return {
        "broker": f"{task.needed('mqtthost')}:{port}",
        "topic": task.needed("mqtttopic"),
        **_qos(task),
        **({"clientId": task.text("mqttclientid")} if task.text("mqttclientid") else {}),
        **({"keepAliveS": max(5, kept)} if kept else {}),
        **{ours: True for ours, name in flags.items() if flag_property(task.values, name)},
        **_format(task, "mqttmsgtype"),
    }


def timer_settings(task: Task, label: str) -> dict[str, Any]:
    """Return the settings of a timer; `label`: of its events, where the properties have none."""
    check_names(task.values, TIMER_PROPERTIES | CONNECTION, task.found)
    read = timer(task.values, label)
    base = {} if read.base is None else {"base": _moment(read.base)}
    most = whole_property(task.values, "maxevents", 0)
    return {
        "interval": int(task.text("interval")),
        "unit": (task.text("unit").lower() or "second").removesuffix("s"),
        **base,
        **({"label": read.label} if read.label else {}),
        **({"maxEvents": most} if most else {}),
    }


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _qos(task: Task) -> dict[str, Any]:
    text = task.text("mqttqos")
    if text not in {"", "0", "1", "2"}:
        task.found.refuse("mqttqos has to be 0, 1 or 2")
    if task.direction == "pub" and text in {"0", "2"}:
        task.found.note(f"mqttqos is 1 instead of {text}: messages are acknowledged when committed")
    if task.direction == "sub" and text == "0":
        task.found.note("mqttqos is 1 instead of 0: messages are sent until they are acknowledged")
    return {"qos": 2} if task.direction == "sub" and text == "2" else {}


def _no_schema_lines(task: Task) -> None:
    if task.text("csvincludeschema").lower() not in {"", "never"}:
        task.found.refuse("csvincludeschema cannot be followed: messages are rows only")


def _format(task: Task, name: str) -> dict[str, Any]:
    """Return the format of messages; property `name` says its type."""
    told = _read_as(task) if task.direction == "pub" else _written_as(task)
    kind = task.text(name).lower() or "csv"
    if task.text("protofile") or task.text("protomsg"):
        told |= {"type": "protobuf", "protobuf": _protobuf(task)}
    elif kind == "json":
        told["type"] = "json"
    elif kind != "csv":
        task.found.refuse(f"{name} {kind[:60]!r} cannot be followed; use csv or json")
    if told.get("type"):
        told = {one: value for one, value in told.items() if one not in COLUMNS}
    return {"format": told} if told else {}


def _read_as(task: Task) -> dict[str, Any]:
    if whole_property(task.values, "maxevents", 0):
        task.found.refuse("maxevents cannot be followed: all that comes is published")
    layout = layout_of(task.values)
    names = set(CsvColumns.model_fields)
    told: dict[str, Any] = CsvColumns.model_validate(layout.model_dump(include=names)).model_dump(
        by_alias=True, exclude_defaults=True
    )
    return told


def _written_as(task: Task) -> dict[str, Any]:
    for name in ("collapse", "rmretdel"):
        if flag_property(task.values, name):
            task.found.refuse(f"{name} cannot be followed: records are sent as they are")
    if flag_property(task.values, "snapshot"):
        task.found.note(f"snapshot has no effect: {SNAPSHOT}")
    if task.text("dateformat"):
        task.found.note(f"dateformat has no effect: {DATES}")
    return {}


def _protobuf(task: Task) -> dict[str, str]:
    file, message = task.needed("protofile"), task.needed("protomsg")
    try:
        definition = task.read(Path(file)) if file else ""
    except OSError as error:
        task.found.refuse(f"protofile {file}: {error.strerror}")
        definition = ""
    return {"definition": definition, "message": message}
