"""Reading specs and models that users write: facts, or a sentence on what is wrong."""

import contextlib
import copy
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from espha.connectors.files import BINARY
from espha.connectors.topics import TopicPlan, topic_plan
from espha.model import ModelError, Project, model_digest
from espha.reader import read_project
from espha_operator.api import Spec
from espha_operator.api.adapters import Adapter
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import Images
from espha_operator.api.names import ROLLBACK
from espha_operator.reconcile import connectors
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Verdict
from espha_operator.status.reasons import Reason

# So many problems fit a message that people still read.
SHOWN = 5


def parse(resource: dict[str, Any], images: Images) -> Deployment | Verdict:
    """Return the deployment that a resource describes, or what is wrong with its spec."""
    try:
        spec, unknown = _read_spec(resource.get("spec") or {})
    except ValidationError as error:
        return Verdict(Reason.INVALID_SPEC, _sentences(error))
    meta = resource["metadata"]
    return Deployment(
        meta["name"],
        meta["namespace"],
        meta["uid"],
        meta["generation"],
        spec,
        images,
        unknown,
        str((meta.get("annotations") or {}).get(ROLLBACK, "")),
    )


def glimpse(resource: dict[str, Any], images: Images) -> Deployment:
    """Return as much of a deployment as can be read, where `parse` says what is wrong with it.

    It serves to look at what runs; nothing may be made of it.
    """
    given = resource.get("spec")
    known = {"model": {"inline": "-"}}
    for field, value in (given if isinstance(given, dict) else {}).items():
        with contextlib.suppress(ValidationError):
            Spec.model_validate({**known, field: value})
            known[field] = value
    meta = resource["metadata"]
    spec = Spec.model_validate(known)
    return Deployment(
        meta["name"], meta["namespace"], meta["uid"], meta["generation"], spec, images
    )


def text(deployment: Deployment, find: Callable[[str], Object | None]) -> tuple[str, str] | Verdict:
    """Return a deployment's model and where it comes from, or why there is none.

    Args:
        deployment: whose model it is.
        find: returns the namespace's ConfigMap of a name; None when there is none.
    """
    model = deployment.spec.model
    if model.config_map is None:
        return model.inline or "", "spec.model.inline"
    name, key = model.config_map.name, model.config_map.key
    found = find(name)
    if found is None:
        return Verdict(Reason.NO_CONFIG_MAP, f'There is no ConfigMap "{name}".')
    xml = (found.get("data") or {}).get(key)
    if xml is None:
        return Verdict(Reason.NO_KEY, f'The ConfigMap "{name}" has no key "{key}".')
    return xml, f"ConfigMap {name}, {key}"


def _read_spec(given: dict[str, Any]) -> tuple[Spec, tuple[str, ...]]:
    """Return a spec without the fields that are unknown here, and these fields.

    The API server refuses what its CRD does not know; a CRD that is newer than this operator knows
    more, and the operator must not let go of a deployment because of that.
    """
    try:
        return Spec.model_validate(given), ()
    except ValidationError as error:
        unknown = [one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"]
        if not unknown:
            raise
    known = copy.deepcopy(given)
    for loc in unknown:
        _at(known, loc[:-1]).pop(loc[-1], None)
    return Spec.model_validate(known), tuple(_path(loc) for loc in unknown)


def _at(place: Any, path: tuple[int | str, ...]) -> dict[int | str, Any]:
    """Return what stands at a place; nothing where a step names a part of the schema instead."""
    for step in path:
        if isinstance(place, list):
            place = place[step] if isinstance(step, int) else {}
        else:
            place = place.get(step, {})
    return place if isinstance(place, dict) else {}


def check(xml: str, source: str, deployment: Deployment) -> ModelFacts | Verdict:
    """Return what a model says, or what is wrong with it or with the adapters; see `read`."""
    model = read(xml, source, deployment)
    if isinstance(model, ModelFacts):
        misfits = [_misfit(one, model) for one in deployment.spec.adapters.every]
        wrong = [one for one in misfits if one]
        if wrong:
            return Verdict(Reason.UNKNOWN_WINDOW, shortened(wrong))
        if model.unfit:
            return Verdict(Reason.UNFIT_CONNECTOR, f"{source}: {shortened(model.unfit)}")
    return model


def read(xml: str, source: str, deployment: Deployment) -> ModelFacts | Verdict:
    """Return what a model says, or what is wrong with it, with element and line.

    Args:
        xml: the model.
        source: where it comes from, for messages.
        deployment: whose topics it names.
    """
    try:
        written = read_project(xml, source)
        given, xml = xml, connectors.with_topics(xml, source, written, deployment.spec.adapters)
        project = written if xml is given else read_project(xml, source)
        topics = topic_plan(
            project,
            prefix=deployment.spec.topics.prefix or "",
            deployment=f"{deployment.namespace}/{deployment.name}",
        )
    except ModelError as error:
        return Verdict(Reason.INVALID_MODEL, f"{source}: {shortened(map(str, error.problems))}")
    # Lines are those of the text that its author knows.
    found = connectors.adapters(written, topics, deployment.spec.adapters)
    return _facts(xml, project, topics, found)


def _facts(xml: str, project: Project, topics: TopicPlan, found: connectors.Found) -> ModelFacts:
    return ModelFacts(
        xml=xml,
        project=project.name,
        digest=model_digest(project),
        prefix=topics.prefix,
        topics=tuple(topics.all()),
        inputs=tuple(topics.inputs),
        outputs=tuple(topics.outputs),
        input_topics=topics.inputs,
        output_topics=(*topics.outputs.values(), topics.dead_letters),
        adapters=found.adapters,
        unfit=found.unfit,
        not_run=found.not_run,
        notes=tuple(_notes(project)),
    )


def _notes(project: Project) -> Iterable[str]:
    """Yield a sentence on topics whose records are written in another way than it stands there."""
    found = [
        path
        for path, window in project.windows.items()
        for connector in window.connectors
        if connector.class_ == "kafka" and connector.properties.get("kafkatype") == "binary"
    ]
    if found:
        yield f"Window {', '.join(dict.fromkeys(found))}: {BINARY}."


def _misfit(adapter: Adapter, model: ModelFacts) -> str:
    """Return what keeps an adapter from its window, as a sentence; empty: nothing."""
    known = model.windows(adapter)
    if adapter.window in known:
        return ""
    what = "source window" if adapter.type.direction == "pub" else "window with a kafka subscriber"
    return (
        f'spec.adapters.{adapter.field} "{adapter.name}": the model has no {what} '
        f'"{adapter.window}"; it has: {", ".join(known) or "none"}.'
    )


def _sentences(error: ValidationError) -> str:
    return shortened(f"{_path(one['loc'])}: {one['msg']}" for one in error.errors())


def _path(loc: Iterable[int | str]) -> str:
    return ".".join(["spec", *map(str, loc)])


def shortened(problems: Iterable[str]) -> str:
    """Return the first problems as one text, and how many more there are."""
    listed = list(problems)
    more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return "; ".join(listed[:SHOWN]) + more
