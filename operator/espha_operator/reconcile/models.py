"""Reading specs and models that users write: facts, or a sentence on what is wrong."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from espha.connectors.topics import TopicPlan, topic_plan
from espha.model import ModelError, Project, model_digest
from espha.reader import read_project
from espha_operator.api import Spec
from espha_operator.api.adapters import InputAdapter, OutputAdapter
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import Images
from espha_operator.status.facts import Verdict

# So many problems fit a message that people still read.
SHOWN = 5


def parse(resource: dict[str, Any], images: Images) -> Deployment | Verdict:
    """Return the deployment that a resource describes, or what is wrong with its spec."""
    try:
        spec = Spec.model_validate(resource.get("spec") or {})
    except ValidationError as error:
        return Verdict(False, "InvalidSpec", _sentences(error))
    meta = resource["metadata"]
    return Deployment(
        meta["name"], meta["namespace"], meta["uid"], meta["generation"], spec, images
    )


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
        return Verdict(False, "InvalidModel", f"{source}: {_shortened(map(str, error.problems))}")
    misfits = [*_input_misfits(deployment, topics), *_output_misfits(deployment, topics)]
    if misfits:
        return Verdict(False, "UnknownWindow", _shortened(misfits))
    return _facts(xml, project, topics)


def _facts(xml: str, project: Project, topics: TopicPlan) -> ModelFacts:
    return ModelFacts(
        xml=xml,
        project=project.name,
        digest=model_digest(project),
        prefix=topics.prefix,
        topics=tuple(topics.all()),
    )


def _input_misfits(deployment: Deployment, topics: TopicPlan) -> list[str]:
    adapters = deployment.spec.adapters.inputs
    return [
        _misfit("inputs", adapter, "source window", list(topics.inputs))
        for adapter in adapters
        if adapter.window not in topics.inputs
    ]


def _output_misfits(deployment: Deployment, topics: TopicPlan) -> list[str]:
    adapters = deployment.spec.adapters.outputs
    return [
        _misfit("outputs", adapter, "window with a kafka subscriber", list(topics.outputs))
        for adapter in adapters
        if adapter.window not in topics.outputs
    ]


def _misfit(where: str, adapter: InputAdapter | OutputAdapter, what: str, known: list[str]) -> str:
    listed = ", ".join(known) or "none"
    return (
        f'spec.adapters.{where} "{adapter.name}": the model has no {what} "{adapter.window}"; '
        f"it has: {listed}."
    )


def _sentences(error: ValidationError) -> str:
    return _shortened(
        f"spec.{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
    )


def _shortened(problems: Iterable[str]) -> str:
    listed = list(problems)
    more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return "; ".join(listed[:SHOWN]) + more
