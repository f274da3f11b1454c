"""A deployed model: its file, what stands in it, and its topics."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from espha.connectors.topics import TopicPlan, topic_plan
from espha.model import ModelError, Project
from espha.reader import read_project


class DeploymentError(Exception):
    """The model of a deployment cannot be used; the text says why."""


class DeployedModel(NamedTuple):
    """A model that was read.

    Attributes:
        xml: its text.
        project: what stands in it.
        plan: the topics of its deployment.
    """

    xml: str
    project: Project
    plan: TopicPlan


@dataclass(frozen=True, slots=True)
class Place:
    """Where a deployment is.

    Attributes:
        bootstrap: Kafka's servers.
        model: the model's XML.
        prefix: of the topics; empty: the model's.
        deployment: "namespace/name".
    """

    bootstrap: str
    model: Path
    prefix: str
    deployment: str

    def plan(self) -> TopicPlan:
        """Return the names of its topics.

        Raises:
            DeploymentError: the model cannot be used.
        """
        return read_deployed(self.model, self.prefix, self.deployment).plan


def read_deployed(model: Path, prefix: str, deployment: str) -> DeployedModel:
    """Read the model of a deployment.

    Args:
        model: the XML.
        prefix: of the topics; empty: see `topic_plan`.
        deployment: "namespace/name".

    Raises:
        DeploymentError: the file cannot be read, or the model is refused; the text names the file.
    """
    try:
        xml = model.read_text(encoding="utf-8")
    except OSError as error:
        raise DeploymentError(f"{model}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DeploymentError(f"{model}: the file is not UTF-8") from None
    return deployed(xml, model.name, prefix, deployment)


def deployed(xml: str, source: str, prefix: str, deployment: str) -> DeployedModel:
    """Return what stands in a deployment's model; `source` says where it is from.

    Raises:
        DeploymentError: the model is refused.
    """
    try:
        project = read_project(xml, source)
        return DeployedModel(xml, project, topic_plan(project, prefix, deployment))
    except ModelError as error:
        raise DeploymentError(str(error)) from None
