"""Versions of the model: what the deployment's own ConfigMaps say, and which one is wanted."""

from dataclasses import replace

from espha_operator.api.deployment import Deployment, ModelFacts, ModelVersion
from espha_operator.api.names import MODEL_DIGEST
from espha_operator.reconcile import models
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.observe import owners, selector
from espha_operator.resources.meta import Object
from espha_operator.resources.versions import FILE
from espha_operator.status.facts import Verdict
from espha_operator.status.reasons import Reason

_SHORTEST = 4


def read(cluster: Cluster, deployment: Deployment) -> tuple[ModelVersion, ...]:
    """Return the versions of which there is a ConfigMap, the newest first."""
    found = cluster.list("ConfigMap", deployment.namespace, selector(deployment))
    versions = [one for each in found if (one := _version(each, deployment))]
    return tuple(sorted(versions, key=lambda one: one.made, reverse=True))


def rolled_back(
    deployment: Deployment, versions: tuple[ModelVersion, ...]
) -> tuple[str, str] | Verdict | None:
    """Return the model that a roll-back asks for, and where it is from; None: none is asked for."""
    wanted = deployment.rollback
    if not wanted:
        return None
    meant = [one for one in versions if one.digest.startswith(wanted)]
    if len(wanted) < _SHORTEST or len(meant) != 1:
        known = ", ".join(one.digest[:12] for one in versions) or "none"
        text = f'espha.dev/rollback: "{wanted}" is not one earlier model; there are: {known}.'
        return Verdict(Reason.UNKNOWN_VERSION, text)
    return meant[0].xml, f"model {meant[0].digest[:12]}"


def settled(
    model: ModelFacts | Verdict, versions: tuple[ModelVersion, ...]
) -> ModelFacts | Verdict:
    """Return a model with the text under which it is known: nobody changes that any more."""
    if isinstance(model, Verdict):
        return model
    texts = {one.digest: one.xml for one in versions}
    return replace(model, xml=texts.get(model.digest, model.xml))


def named(versions: tuple[ModelVersion, ...], label: str | None) -> str:
    """Return the digest of the version that a status names; empty: it is not one of them."""
    digits = (label or "").rpartition("@")[2]
    meant = [one.digest for one in versions if one.digest[:_SHORTEST] == digits]
    return meant[0] if len(meant) == 1 else ""


def leading(
    deployment: Deployment,
    versions: tuple[ModelVersion, ...],
    leads: str,
    wanted: ModelFacts | None,
) -> ModelFacts | None:
    """Return the model that leads; the wanted one where that is not known.

    Args:
        deployment: whose model it is.
        versions: that there are.
        leads: digest of the model that leads; empty: not known.
        wanted: the model that is to lead; None: there is none.
    """
    for one in versions:
        if wanted is not None and one.digest == leads != wanted.digest:
            found = models.read(one.xml, f"model {leads[:12]}", deployment)
            return found if isinstance(found, ModelFacts) else wanted
    return wanted


def _version(found: Object, deployment: Deployment) -> ModelVersion | None:
    meta, data = found["metadata"], found.get("data") or {}
    digest = (meta.get("annotations") or {}).get(MODEL_DIGEST)
    if not digest or deployment.uid not in owners(found) or FILE not in data:
        return None
    return ModelVersion(digest, data[FILE], meta.get("creationTimestamp") or "")
