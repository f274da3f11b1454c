"""Versions of the model: one ConfigMap for each, which nobody can change."""

from espha_operator.api.deployment import Deployment
from espha_operator.api.names import MODEL_DIGEST, MODEL_LABEL
from espha_operator.resources import common
from espha_operator.resources.meta import Object

FILE = "model.xml"
_DIGITS = 12


def name(deployment: Deployment, digest: str) -> str:
    """Return the name of the ConfigMap with the model of a digest."""
    return f"{deployment.name}-model-{digest[:_DIGITS]}"


def version(deployment: Deployment, digest: str, xml: str) -> Object:
    """Return the ConfigMap with a version of the model.

    A pod that mounts it reads the same model in each of its lives, whatever becomes of the spec.
    """
    made = common.config_map(deployment, name(deployment, digest), "engine", {FILE: xml})
    meta = made["metadata"]
    meta["labels"] = {**meta["labels"], MODEL_LABEL: digest[:_DIGITS]}
    meta["annotations"] = {**meta.get("annotations", {}), MODEL_DIGEST: digest}
    return {**made, "immutable": True}
