"""Properties of connectors of files and topics, as the layout and the style of their records."""

from collections.abc import Mapping
from typing import Final, Literal, cast

from espha.model.dates import check_date_format
from espha.model.project import Part, Window
from espha.records.layout import FILE_FORMATS, Format, Layout, Style, read_delimiter

SOURCE_PROPERTIES: Final = frozenset(
    {
        "fsname", "fstype", "addcsvopcode", "addcsvflags", "noautogenfield", "header",
        "dateformat", "csvfielddelimiter", "ignorecsvparseerrors", "publishwithupsert",
        "stripnullsfromcsv", "blocksize", "rate", "repeatcount", "maxevents", "growinginputfile",
        "transactional", "prebuffer", "snapshot", "quiesceproject", "configfilesection",
    }
)  # fmt: skip
"""What is known with type pub. Blocks, transactions and buffers change no result; that bad rows are
dropped is always so."""
KAFKA_SOURCE_PROPERTIES: Final = frozenset(
    {
        "addcsvopcode", "addcsvflags", "noautogenfield", "dateformat", "csvfielddelimiter",
        "publishwithupsert", "stripnullsfromcsv",
    }
)  # fmt: skip
"""What has an effect on records of a Kafka connector of type pub."""
KAFKA_TARGET_PROPERTIES: Final = frozenset({"dateformat", "doubleprecision"})
"""What has an effect on records of a Kafka connector of type sub."""
TARGET_PROPERTIES: Final = frozenset(
    {
        "fsname", "fstype", "snapshot", "collapse", "rmretdel", "header", "dateformat",
        "doubleprecision", "unbufferedoutputstreams", "configfilesection", "blocksize",
    }
)  # fmt: skip
"""What is known with type sub."""

_LARGEST = 2**53


class FileSource(Part):
    """A file that feeds a source window.

    Attributes:
        file: its name.
        layout: how it is written.
        block: events published together.
        rate: events a second; 0: as fast as they are read.
        repeat: how many times more the file is published.
        most: how many events are published at most; None: all.
        growing: the file is read on when it grows.
    """

    file: str
    layout: Layout = Layout()
    block: int = 1
    rate: int = 0
    repeat: int = 0
    most: int | None = None
    growing: bool = False


class FileTarget(Style):
    """A file that takes what leaves a window.

    Attributes:
        file: its name.
        header: first line: none, the names of the fields, or also `opcode,flags`.
        snapshot: rows that the window has when the connector starts come first, as inserts.
        collapse: an update is one U, without the old row.
        drop_retention_deletes: deletes made by retention are left out.
    """

    file: str
    header: Literal["none", "true", "full"] = "none"
    snapshot: bool = False
    collapse: bool = False
    drop_retention_deletes: bool = False


def file_source(properties: Mapping[str, str]) -> FileSource:
    """Read the properties of an fs connector of type pub.

    Raises:
        ValueError: a property has a value that it cannot have; the text says which.
    """
    return FileSource(
        file=_file(properties),
        layout=layout_of(properties).model_copy(
            update={"format": _format(properties), "header_lines": _header_lines(properties)}
        ),
        block=max(1, whole_property(properties, "blocksize", 1)),
        rate=whole_property(properties, "rate", 0),
        repeat=whole_property(properties, "repeatcount", 0),
        most=whole_property(properties, "maxevents", 0) or None,
        growing=flag_property(properties, "growinginputfile"),
    )


def layout_of(properties: Mapping[str, str]) -> Layout:
    """Read what properties of any connector of type pub say about columns.

    Raises:
        ValueError: a property has a value that it cannot have; the text says which.
    """
    flags = _one_of(properties, "addcsvflags", ("", "none", "normal", "partialupdate"))
    return Layout(
        opcode=not flag_property(properties, "addcsvopcode"),
        flags=flags in {"", "none"},
        upsert=flag_property(properties, "publishwithupsert"),
        partial=flags == "partialupdate",
        autogen_field=not flag_property(properties, "noautogenfield"),
        date_format=check_date_format(properties.get("dateformat", "").strip()),
        delimiter=read_delimiter(properties.get("csvfielddelimiter") or ","),
        strip_nulls=flag_property(properties, "stripnullsfromcsv"),
    )


def precision_of(properties: Mapping[str, str]) -> int:
    """Read how many decimals doubles have that leave by a connector of type sub.

    Raises:
        ValueError: it is not a whole number.
    """
    return min(30, whole_property(properties, "doubleprecision", 6))


def file_target(properties: Mapping[str, str]) -> FileTarget:
    """Read the properties of an fs connector of type sub.

    Raises:
        ValueError: a property has a value that it cannot have; the text says which.
    """
    header = _one_of(properties, "header", ("", "false", "true", "full"))
    return FileTarget(
        file=_file(properties),
        format=_format(properties),
        header="full" if header == "full" else "true" if header == "true" else "none",
        snapshot=flag_property(properties, "snapshot"),
        collapse=flag_property(properties, "collapse"),
        drop_retention_deletes=flag_property(properties, "rmretdel"),
        date_format=properties.get("dateformat", ""),
        precision=precision_of(properties),
    )


def record_layout(window: Window) -> Layout:
    """Return how the records of a source window's topic are written.

    Raises:
        ValueError: a property of its Kafka connector has a value that it cannot have.
    """
    connector = window.kafka("pub")
    properties = {} if connector is None else connector.properties
    return layout_of(properties).model_copy(update={"format": _record_format(properties)})


def record_style(window: Window) -> Style:
    """Return how the records of a window's output topic are written; doubles in JSON are whole.

    Raises:
        ValueError: a property of its Kafka connector has a value that it cannot have.
    """
    connector = window.kafka("sub")
    properties = {} if connector is None else connector.properties
    form = _record_format(properties)
    return Style(
        format=form,
        date_format=properties.get("dateformat", "").strip(),
        precision=None if form == "json" else precision_of(properties),
    )


def own_format(kind: str) -> str:
    """Return why a `kafkatype` is no format of the deployment's topics; empty: it is one.

    Engines replay what is on these topics, and every one of them, now and later, has to read the
    same: so their records are text that needs no schema from elsewhere.
    """
    if kind in OWN_FORMATS:
        return ""
    if kind in _OF_ADAPTERS:
        return (
            f"topics of a deployment have csv or json; use one of them, and for messages in {kind} "
            f"an adapter (kafka or mqtt, with format.type {kind})"
        )
    return "use csv or json"


OWN_FORMATS: Final = frozenset({"csv", "json", "binary"})
"""What `kafkatype` can be on a topic of a deployment."""
BINARY: Final = (
    "kafkatype binary is a format of SAS's own that is not published, so records of this topic are "
    "CSV: write csv, or json; for avro or protobuf use an adapter (format.type)"
)
"""What is said of a topic of that type."""
_OF_ADAPTERS: Final = frozenset({"avro", "protobuf"})


def _record_format(properties: Mapping[str, str]) -> Format:
    # Binary event blocks are SAS's own format; what failover needs of them is in our headers.
    return "json" if properties.get("kafkatype", "").strip() == "json" else "csv"


def _file(properties: Mapping[str, str]) -> str:
    name = properties.get("fsname", "").strip()
    if not name or "\0" in name:
        raise ValueError("property 'fsname' is missing: the name of the file")
    return name


def _format(properties: Mapping[str, str]) -> Format:
    found = _one_of(properties, "fstype", ("", *FILE_FORMATS))
    return cast(Format, found or "csv")


def _header_lines(properties: Mapping[str, str]) -> int:
    """Count header lines: older projects write true for one."""
    words = {"true": 1, "false": 0, "full": 1}
    text = properties.get("header", "").strip().lower()
    return words[text] if text in words else whole_property(properties, "header", 0)


def _one_of(properties: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    text = properties.get(name, "").strip().lower()
    if text in known:
        return text
    listed = ", ".join(word for word in known if word)
    raise ValueError(f"property {name!r} is {text!r}; use one of {listed}")


def flag_property(properties: Mapping[str, str], name: str) -> bool:
    """Read true or false; without the property it is false.

    Raises:
        ValueError: it is something else; the text says so.
    """
    known = ("", "true", "false", "1", "0", "yes", "no")
    return _one_of(properties, name, known) in {"true", "1", "yes"}


def whole_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """Read a whole number from 0; without the property it is `default`.

    Raises:
        ValueError: it is something else; the text says so.
    """
    text = properties.get(name, "").strip()
    if not text:
        return default
    if text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= _LARGEST:
        return int(text)
    raise ValueError(f"property {name!r} is {text!r}; give a whole number")
