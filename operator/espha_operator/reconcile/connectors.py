"""Adapters that the connectors of a model become."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lxml import etree
from pydantic import ValidationError

from espha.adapters.translation import is_translated, translate_connector
from espha.connectors.commands import adapter_properties
from espha.connectors.files import KAFKA_TARGET_PROPERTIES
from espha.connectors.topics import TopicPlan
from espha.model import Project
from espha.model.project import Connector
from espha.model.xml import parse
from espha_operator.api.adapters import Adapter, Adapters, InputAdapter, OutputAdapter
from espha_operator.api.deployment import Deployment, ModelFacts

_DATA = "/data"
_TOPIC = "espha_topic"
"""Name of the connectors by which windows get output topics."""
_FOLDERS = {"@ESP_PROJECT_HOME@": _DATA, "@ESP_PROJECT_OUTPUT@": f"{_DATA}/output"}
"""Folders of a project's package, which lies on the volume."""


class Found(NamedTuple):
    """What the connectors of a model are.

    Attributes:
        adapters: those that they become.
        unfit: a sentence for each connector that should become one, and cannot.
        not_run: a sentence for each connector of a class for which there is no adapter.
    """

    adapters: tuple[Adapter, ...] = ()
    unfit: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()


@dataclass
class _Collected:
    adapters: list[Adapter] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)


class _Told(NamedTuple):
    """What a connector says.

    Attributes:
        class_: fs, mqtt or timer.
        properties: by name.
    """

    class_: str
    properties: dict[str, str]


class _Place(NamedTuple):
    """A connector of a window, and the name that stays when others come and go."""

    window: str
    connector: Connector
    label: str

    def __str__(self) -> str:
        name = f' "{self.connector.name}"' if self.connector.name else ""
        return f"line {self.connector.line}: connector{name} of window {self.window}"


def adapters(project: Project, topics: TopicPlan, spec: Adapters) -> Found:
    """Return what the connectors of a model become, where the spec wants it.

    Args:
        project: the model.
        topics: of its deployment.
        spec: what the resource says of adapters.
    """
    if not spec.from_model or spec.volume is None:
        return Found()
    found = _Collected()
    for place in _places(project):
        told = _translated(place, found)
        if told is not None:
            _add(place, told, topics, spec.volume.claim_name, found)
    _refuse_doubles(spec, found)
    return Found(tuple(found.adapters), tuple(found.unfit), tuple(found.not_run))


def with_topics(xml: str, source: str, project: Project, spec: Adapters) -> str:
    """Return a model in which each window that is to be written has an output topic.

    Such a window gets a Kafka connector, as if its author had given it one: engines, adapters and
    the digest of the model then agree without being told.

    Args:
        xml: the model.
        source: where it comes from.
        project: what stands in it.
        spec: what the resource says of adapters.

    Raises:
        ModelError: it cannot be parsed.
    """
    if not spec.from_model:
        return xml
    lacking = {
        tuple(path.split("/")): properties
        for path, window in project.windows.items()
        if window.kafka("sub") is None and (properties := _first_target(path, project)) is not None
    }
    if not lacking:
        return xml
    root = parse(xml, source)
    for query in root.iter("contquery"):
        for window in query.iterfind("windows/*"):
            properties = lacking.get((query.get("name", ""), window.get("name", "")))
            if properties is not None:
                _give_topic(window, properties)
    return etree.tostring(root, encoding="unicode")


def _first_target(path: str, project: Project) -> dict[str, str] | None:
    """Return the properties of the first connector that takes what a window publishes."""
    for place in _places(project):
        if place.window == path and place.connector.type == "sub":
            told = _translated(place, _Collected())
            if told is not None:
                return told.properties
    return None


def _give_topic(window: etree._Element, properties: dict[str, str]) -> None:
    block = window.find("connectors")
    if block is None:
        return
    connector = etree.SubElement(block, "connector", {"class": "kafka", "name": _TOPIC})
    told = etree.SubElement(connector, "properties")
    written = {name: properties[name] for name in KAFKA_TARGET_PROPERTIES if properties.get(name)}
    for name, value in {"type": "sub", "kafkatype": "csv", **written}.items():
        etree.SubElement(told, "property", {"name": name}).text = value


def with_adapters(deployment: Deployment, model: ModelFacts | None) -> Deployment:
    """Return a deployment that has the adapters of its model's connectors, too.

    Args:
        deployment: as the resource says.
        model: the one that leads, or is to lead; None: there is none.
    """
    spec = deployment.spec.adapters
    if model is None or not spec.from_model or not model.adapters:
        return deployment
    made = {
        kind.field: [
            *getattr(spec, kind.field),
            *(one for one in model.adapters if isinstance(one, kind)),
        ]
        for kind in (InputAdapter, OutputAdapter)
    }
    both = deployment.spec.model_copy(update={"adapters": spec.model_copy(update=made)})
    return replace(deployment, spec=both)


def _places(project: Project) -> Iterator[_Place]:
    for path, window in project.windows.items():
        nameless: Counter[str] = Counter()
        for connector in window.connectors:
            label = connector.name
            if not label:
                nameless[connector.type] += 1
                label = f"{connector.type} {nameless[connector.type]}"
            yield _Place(path, connector, label)


def _translated(place: _Place, found: _Collected) -> _Told | None:
    """Return what becomes an adapter of a connector; None: nothing does."""
    connector = place.connector
    if connector.class_ == "kafka":
        return None
    if is_translated(connector.class_):
        return _Told(connector.class_, dict(connector.properties))
    if connector.class_ == "adapter":
        try:
            return _Told("fs", adapter_properties(connector.properties.get("command", "")))
        except ValueError as error:
            found.not_run.append(f"Model, {place} is not run: {error}.")
            return None
    found.not_run.append(
        f"Model, {place} is not run: there is no adapter for class {connector.class_[:60]!r}."
    )
    return None


def _add(place: _Place, connector: _Told, topics: TopicPlan, claim: str, found: _Collected) -> None:
    way = place.connector.type
    if way == "sub" and place.window not in topics.outputs:
        found.unfit.append(
            f"{place}: the window has no kafka connector of type sub, so nothing of it can be "
            "written; give it one"
        )
        return
    made = translate_connector(
        connector.class_, way, place.window, _placed(connector.properties), place.label
    )
    if made.config is None:
        found.unfit += [f"{place}: {problem}" for problem in made.problems]
        return
    told = json.loads(made.config.text())
    if "file" in told:
        told["file"]["path"] = _on_volume(told["file"]["path"])
        told["volume"] = {"claimName": claim}
    kind: type[Adapter] = InputAdapter if way == "pub" else OutputAdapter
    try:
        found.adapters.append(kind.model_validate(told))
    except ValidationError as error:
        where = [".".join(map(str, one["loc"])) for one in error.errors()]
        if where == ["file.path"]:
            found.unfit.append(
                f"{place}: the file {told['file']['path']} cannot lie on the volume: give a path "
                "without '..', of letters, digits, '_', '.' and '-'"
            )
        else:
            found.unfit += [f"{place}: {one['msg']}" for one in error.errors()]


def _placed(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties with the folders of a package where the volume has them."""
    file = properties.get("fsname", "")
    for token, folder in _FOLDERS.items():
        file = file.replace(token, folder)
    return {**properties, "fsname": file} if file else properties


def _on_volume(path: str) -> str:
    if path.startswith(f"{_DATA}/"):
        return path
    return f"{_DATA}/{path.removeprefix('./').lstrip('/')}"


def _refuse_doubles(spec: Adapters, found: _Collected) -> None:
    """Refuse two adapters that would write one file, or have one name."""
    every = [*spec.outputs, *(one for one in found.adapters if isinstance(one, OutputAdapter))]
    files = Counter(path for one in every if (path := _written(one)))
    found.unfit += [
        f"{count} adapters would write {path}: give each of them a file of its own"
        for path, count in files.items()
        if count > 1
    ]
    names = Counter(one.label for one in [*spec.every, *found.adapters])
    found.unfit += [
        f"{count} adapters would be called {label}: give that of the resource another name"
        for label, count in names.items()
        if count > 1
    ]


def _written(adapter: Adapter) -> str:
    """Return the file that an adapter writes, with its volume; empty: none."""
    path = getattr(adapter.settings, "path", None)
    volume = adapter.volume.claim_name if adapter.volume else ""
    return f"{path} of volume {volume}" if path else ""
