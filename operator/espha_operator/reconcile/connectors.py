"""Adapters that the connectors of a model become."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from lxml import etree
from pydantic import ValidationError

from espha.adapters.translation import directions, is_translated, translate_connector
from espha.connectors.commands import FILE_ADAPTER, read_command
from espha.connectors.connectors import is_active
from espha.connectors.files import KAFKA_TARGET_PROPERTIES
from espha.connectors.topics import TopicPlan
from espha.model import ModelError, Project
from espha.model.problems import Problem, line_of
from espha.model.project import Connector
from espha.model.xml import parse
from espha_operator.api.adapters import Adapter, Adapters, InputAdapter, OutputAdapter
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.pods import PodTemplate

_DATA = "/data"
_TOPIC = "espha_topic"
"""Name of the connectors by which windows get output topics."""
_FOLDERS = {"@ESP_PROJECT_HOME@": _DATA, "@ESP_PROJECT_OUTPUT@": f"{_DATA}/output"}
"""Folders of a project's package, which lies on the volume."""
_STRICT: Final = frozenset({"fs", "mqtt", "timer", FILE_ADAPTER})
"""Classes whose connectors must be fit: a model with one that is not is refused.

Of the others, some say too little (a name of a data source, for example): these are not run, and
the status says why. So a model that was taken once is still taken.
"""
_FILES: Final = ("fsname", "configUrl", "configurl", "connectstring")
"""Properties in which folders of a package may stand."""
_PATHS: Final = ("path", "configuration")
"""Settings of adapters that are files."""
_FAR: Final = "kafkahostport"
_VOLUME: Final = (
    "its files need a volume: name a PersistentVolumeClaim in spec.adapters.volume.claimName"
)


class Found(NamedTuple):
    """What the connectors of a model are.

    Attributes:
        adapters: those that they become.
        unfit: a sentence for each connector that should become one, and cannot.
        not_run: a sentence for each connector that is not run, which the status says.
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
        class_: its class; of a command line the program.
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
    if not spec.from_model:
        return Found()
    found = _Collected()
    for place in _places(project):
        told = _translated(place, spec, found)
        if told is not None:
            _add(place, told, topics, spec, found)
    _refuse_doubles(spec, found)
    return Found(tuple(found.adapters), tuple(found.unfit), tuple(found.not_run))


def with_topics(xml: str, source: str, project: Project, spec: Adapters) -> str:
    """Return a model in which each window that is to be written has an output topic.

    Such a window gets a Kafka connector, as if its author had given it one: engines, adapters and
    the digest of the model then agree without being told. A Kafka connector of another cluster
    becomes inactive: for engines, those that are left name topics of the deployment.

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
    far = {path: found for path in project.windows if (found := _far(path, project, spec))}
    lacking = {
        path: properties
        for path, window in project.windows.items()
        if not any(
            one.class_ == "kafka" and one.type == "sub"
            for place, one in enumerate(window.connectors)
            if place not in far.get(path, ())
        )
        and (properties := _first_target(path, project, spec)) is not None
    }
    if not lacking and not far:
        return xml
    root = parse(xml, source)
    for query in root.iter("contquery"):
        for window in query.iterfind("windows/*"):
            path = f"{query.get('name', '')}/{window.get('name', '')}"
            if path in far:
                _leave_out(window, far[path], len(project.windows[path].connectors))
            if path in lacking:
                _give_topic(window, lacking[path])
    return etree.tostring(root, encoding="unicode")


def _far(path: str, project: Project, spec: Adapters) -> tuple[int, ...]:
    """Return which of a window's connectors are of another Kafka cluster."""
    connectors = project.windows[path].connectors
    return tuple(place for place, one in enumerate(connectors) if _is_far(one, spec))


def _is_far(connector: Connector, spec: Adapters) -> bool:
    servers = {one.strip() for one in connector.properties.get(_FAR, "").split(",")}
    return connector.class_ == "kafka" and not servers.isdisjoint(spec.other_brokers)


def _leave_out(window: etree._Element, places: tuple[int, ...], count: int) -> None:
    """Make connectors inactive; they are counted as a reader of the model counts them."""
    active = [one for one in window.iterfind("connectors/connector") if is_active(one)]
    if len(active) != count:
        name = window.get("name", "")
        reason = "a token says whether a connector is active; write true or false, beside one of "
        reason += "another Kafka cluster"
        raise ModelError([Problem(line_of(window), str(window.tag), name, reason)])
    for place in places:
        for item in list(active[place].iter("property")):
            if item.get("name", "").strip() == "active":
                item.getparent().remove(item)  # type: ignore[union-attr]
        active[place].set("active", "false")


def _first_target(path: str, project: Project, spec: Adapters) -> dict[str, str] | None:
    """Return the properties of the first connector that takes what a window publishes."""
    for place in _places(project):
        if place.window == path and place.connector.type == "sub":
            told = _translated(place, spec, _Collected())
            if told is not None and (told.class_ in _STRICT or _config_of(place, told)):
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


def _translated(place: _Place, spec: Adapters, found: _Collected) -> _Told | None:
    """Return what becomes an adapter of a connector; None: nothing does."""
    connector = place.connector
    class_, properties = connector.class_, dict(connector.properties)
    if class_ == "kafka" and not _is_far(connector, spec):
        return None
    if class_ == "adapter":
        try:
            line = read_command(properties.get("command", ""))
        except ValueError as error:
            found.not_run.append(_not_run(place, str(error)))
            return None
        if not is_translated(line.program, connector.type):
            why = f"there is no substitute for {line.program[:60]!r}"
        else:
            why = next(iter(line.problems), "")
        if why:
            found.not_run.append(_not_run(place, why))
            return None
        return _Told(line.program, dict(line.properties))
    if is_translated(class_, connector.type):
        return _Told(class_, properties)
    others = directions(class_)
    what = f"of type {others[0]} only for" if others else "for"
    why = f"there is {'an' if others else 'no'} adapter {what} class {class_[:60]!r}"
    found.not_run.append(_not_run(place, why))
    return None


def _not_run(place: _Place, why: str) -> str:
    return f"Model, {place} is not run: {why}."


def _config_of(place: _Place, told: _Told) -> bool:
    made = translate_connector(
        told.class_, place.connector.type, place.window, _placed(told.properties), place.label
    )
    return made.config is not None


def _add(
    place: _Place, connector: _Told, topics: TopicPlan, spec: Adapters, found: _Collected
) -> None:
    way = place.connector.type
    made = translate_connector(
        connector.class_, way, place.window, _placed(connector.properties), place.label
    )
    problems: list[str] = list(made.problems)
    if made.config is not None and way == "sub" and place.window not in topics.outputs:
        problems = [
            "the window has no kafka connector of type sub, so nothing of it can be written; give "
            "it one"
        ]
    elif made.config is not None:
        told = json.loads(made.config.text())
        problems = _on_pods(told, made.config.type.name, spec)
        problems += [] if problems else _accepted(told, way, found)
    for problem in problems:
        if connector.class_ in _STRICT:
            found.unfit.append(f"{place}: {problem}")
        else:
            found.not_run.append(_not_run(place, problem))


def _on_pods(told: dict[str, Any], kind: str, spec: Adapters) -> list[str]:
    """Give a configuration what its pods need: volume and settings. Return what is missing."""
    settings = told[kind]
    paths = [name for name in _PATHS if isinstance(settings.get(name), str)]
    for name in paths:
        settings[name] = _on_volume(settings[name])
    added = {**dict(spec.placement or ()), "env": spec.env}
    template = PodTemplate(**{name: value for name, value in added.items() if value is not None})
    if template.model_fields_set:
        told["pod"] = template.model_dump(by_alias=True, exclude_none=True)
    home = kind == "script" and settings["language"] == "python" and spec.volume is not None
    if home:
        settings["home"] = _DATA
    if not paths and not home:
        return []
    if spec.volume is None:
        return [_VOLUME]
    told["volume"] = {"claimName": spec.volume.claim_name}
    return []


def _accepted(told: dict[str, Any], way: str, found: _Collected) -> list[str]:
    """Take a configuration, or return what is wrong with it."""
    kind: type[Adapter] = InputAdapter if way == "pub" else OutputAdapter
    try:
        found.adapters.append(kind.model_validate(told))
    except ValidationError as error:
        return [_wrong(one, told) for one in error.errors()]
    return []


def _wrong(error: Any, told: dict[str, Any]) -> str:
    where = [str(part) for part in error["loc"]]
    if where[-1:] and where[-1] in _PATHS:
        return (
            f"the file {told[where[0]][where[-1]]} cannot lie on the volume: give a path without "
            "'..', of letters, digits, '_', '.' and '-'"
        )
    return str(error["msg"])


def _placed(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties with the folders of a package where the volume has them."""
    placed = dict(properties)
    for name in _FILES:
        for token, folder in _FOLDERS.items():
            if token in placed.get(name, ""):
                placed[name] = placed[name].replace(token, folder)
    return placed


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
