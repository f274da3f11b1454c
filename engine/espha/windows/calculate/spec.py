"""Calculate windows: an algorithm over the last events, or over all."""

from collections.abc import Sequence
from typing import Literal

from espha.model.project import Field, Window
from espha.model.schema import read_schema
from espha.windows.calculate.contract import Algorithm, Setting
from espha.windows.calculate.declared import find, missing
from espha.windows.calculate.maps import Input, Output
from espha.windows.calculate.reading import MapsReader
from espha.windows.shared.mas_spec import read_mapped
from espha.windows.shared.spec import Reading, WindowType


class CalculateWindow(Window):
    """Runs an algorithm over its events.

    Attributes:
        algorithm: its name, as it is declared.
        inputs: in the order of the algorithm's.
        settings: all parameters, with their defaults.
        outputs: in the order of the XML.
        requests: the ports of the edges that bring requests, not data.
        upserts: rows of several events share keys, so they leave as P.
    """

    type: Literal["calculate"] = "calculate"
    algorithm: str
    inputs: tuple[Input, ...]
    settings: tuple[tuple[str, Setting], ...]
    outputs: tuple[Output, ...]
    requests: tuple[int, ...] = ()
    upserts: bool = False


def _read(reading: Reading) -> Window | None:
    element, findings = reading.element, reading.findings
    before = len(findings.problems)
    name = element.get("algorithm", "")
    if name.upper() == "MAS":
        return read_mapped(reading)
    algorithm = find(name)
    if algorithm is None:
        reading.refuse(missing(name))
        return None
    data = next((feed for feed in reading.feeds if feed.role == "data"), None)
    if data is None:
        reading.refuse('needs an edge with role="data"')
        return None
    reader = MapsReader(element, findings, algorithm)
    fields = read_schema(element, findings)
    settings, inputs, outputs = reader.settings(), reader.inputs(data.fields), reader.outputs()
    reader.check(settings, inputs)
    if fields is None:
        return None
    reader.check_outputs(fields, outputs)
    requests = _requests(reading, inputs)
    for port, feed in enumerate(reading.feeds):
        if port not in requests:
            reader.check_passed_on(fields, outputs, feed.fields)
    if len(findings.problems) > before:
        return None
    return CalculateWindow(
        **reading.common,
        fields=fields,
        algorithm=algorithm.name,
        inputs=inputs,
        settings=tuple(settings.items()),
        outputs=outputs,
        requests=requests,
        upserts=_share_keys(algorithm, inputs, outputs, fields, data.fields),
    )


def _share_keys(
    algorithm: Algorithm,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    fields: Sequence[Field],
    feed: Sequence[Field],
) -> bool:
    """Say whether rows of several events can have the same key: not all of theirs is in it."""
    keys, incoming = ({each.name for each in some if each.key} for some in (fields, feed))
    sources = dict(inputs)
    kept = keys.copy()
    for output in outputs:
        result = algorithm.results[output.result]
        if output.slots[0].field in keys:
            kept |= {slot.field for slot in sources.get(result.repeats, ())}
            kept |= incoming if result.unique else set()
    return not incoming <= kept


def _requests(reading: Reading, inputs: tuple[Input, ...]) -> tuple[int, ...]:
    """Return the ports of requests: by role, or because what comes there is no data."""
    needed = {slot.field for each in inputs for slot in each.slots}
    seen_data = False
    ports = []
    for port, feed in enumerate(reading.feeds):
        has_all = needed <= {field.name for field in feed.fields}
        if feed.role == "request" or (seen_data and not has_all):
            ports.append(port)
        else:
            seen_data = True
    return tuple(ports)


WINDOW = WindowType(
    "calculate",
    _read,
    "statistics",
    elements=frozenset(
        {"schema", "schema-string", "parameters", "input-map", "output-map", "mas-map"}
    ),
    attributes=frozenset({"algorithm"}),
    inputs=(1, None),
    roles=frozenset({"request"}),
)
