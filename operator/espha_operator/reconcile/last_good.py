"""The model that was valid last: what goes on while the one of the spec is not."""

from collections.abc import Iterator

from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.reconcile import models
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.observe import owners, selector
from espha_operator.resources.versions import FILE


class LastGood:
    """Remembers the last valid model; after a restart it is found in the operator's ConfigMaps."""

    def __init__(self, cluster: Cluster) -> None:
        """Look for it when it is asked for, and then once."""
        self._cluster = cluster
        self._known: ModelFacts | None = None
        self._looked = False

    def keep(self, model: ModelFacts) -> None:
        """Remember a model that is valid."""
        self._known = model

    def find(self, deployment: Deployment, label: str | None) -> ModelFacts | None:
        """Return the model that was planned last; None: there has not been any.

        Args:
            deployment: whose model.
            label: of the model that the status names; where none has it, the newest is taken.
        """
        if self._known is None and not self._looked:
            found = list(self._stored(deployment))
            named = [one for one in found if one.label == label]
            self._known = next(iter([*named, *found]), None)
            self._looked = True
        return self._known

    def _stored(self, deployment: Deployment) -> Iterator[ModelFacts]:
        """Return the models in ConfigMaps that the deployment owns, the newest first."""
        things = self._cluster.list("ConfigMap", deployment.namespace, selector(deployment))
        for thing in sorted(things, key=_age, reverse=True):
            text = (thing.get("data") or {}).get(FILE)
            if text is None or deployment.uid not in owners(thing):
                continue
            read = models.read(text, thing["metadata"]["name"], deployment)
            if isinstance(read, ModelFacts):
                yield read


def _age(thing: dict[str, dict[str, str]]) -> str:
    return thing["metadata"].get("creationTimestamp") or ""
