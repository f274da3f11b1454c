"""Reading specs and models that users write: facts, or a sentence on what is wrong."""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from espha.connectors.topics import TopicPlan, topic_plan
from espha.model import ModelError, Project, model_digest
from espha.reader import read_project
from espha_operator.api import Spec
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import Images
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Verdict
from espha_operator.status.reasons import Reason

# So many problems fit a message that people still read.
SHOWN = 5


def parse(resource: dict[str, Any], images: Images) -> Deployment | Verdict:
    """Return the deployment that a resource describes, or what is wrong with its spec."""
    try:
        spec = Spec.model_validate(resource.get("spec") or {})
    except ValidationError as error:
        return Verdict(Reason.INVALID_SPEC, _sentences(error))
    meta = resource["metadata"]
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


def check(xml: str, source: str, deployment: Deployment) -> ModelFacts | Verdict:
    """Return what a model says, or what is wrong with it, with element and line.

    Args:
        xml: the model.
        source: where it comes from, for messages.
        deployment: whose topics it names, and whose adapters must fit.
    """
    try:
        project = read_project(xml, source)
        topics = topic_plan(
            project,
            prefix=deployment.spec.topics.prefix or "",
            deployment=f"{deployment.namespace}/{deployment.name}",
        )
    except ModelError as error:
        return Verdict(Reason.INVALID_MODEL, f"{source}: {shortened(map(str, error.problems))}")
    misfits = list(_misfits(deployment, topics))
    if misfits:
        return Verdict(Reason.UNKNOWN_WINDOW, shortened(misfits))
    return _facts(xml, project, topics)


def _facts(xml: str, project: Project, topics: TopicPlan) -> ModelFacts:
    return ModelFacts(
        xml=xml,
        project=project.name,
        digest=model_digest(project),
        prefix=topics.prefix,
        topics=tuple(topics.all()),
    )


def _misfits(deployment: Deployment, topics: TopicPlan) -> Iterable[str]:
    known = {"pub": topics.inputs, "sub": topics.outputs}
    what = {"pub": "source window", "sub": "window with a kafka subscriber"}
    for adapter in deployment.spec.adapters.every:
        direction = adapter.type.direction
        if adapter.window not in known[direction]:
            listed = ", ".join(known[direction]) or "none"
            yield (
                f'spec.adapters.{adapter.field} "{adapter.name}": the model has no '
                f'{what[direction]} "{adapter.window}"; it has: {listed}.'
            )


def _sentences(error: ValidationError) -> str:
    return shortened(
        f"spec.{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
    )


def shortened(problems: Iterable[str]) -> str:
    """Return the first problems as one text, and how many more there are."""
    listed = list(problems)
    more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return "; ".join(listed[:SHOWN]) + more
