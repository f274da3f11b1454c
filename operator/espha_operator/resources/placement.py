"""Where pods run: what users say, on top of what is usual."""

from espha_operator.api.base import Part
from espha_operator.api.pods import PodTemplate
from espha_operator.resources.meta import Object, checksum

CLAIM = "espha.dev/claim"
"""Label of pods that share a volume; its value is `claim_mark`."""
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LONGEST_VALUE = 63


def claim_mark(claim: str) -> str:
    """Return the value of the label for a claim: its name, or a fingerprint of a long one."""
    return claim if len(claim) <= _LONGEST_VALUE else checksum(claim)


def dumped(part: Part) -> Object:
    """Return a part as Kubernetes writes it."""
    return part.model_dump(by_alias=True, exclude_none=True)


def placement(template: PodTemplate, selector: dict[str, str], claim: str | None) -> Object:
    """Return the fields of a pod that say where it may run.

    Args:
        template: what the user says.
        selector: labels of the component's pods.
        claim: of a volume that only one node can mount; pods that have it run on one node.
    """
    made: Object = {
        "affinity": _affinity(template, selector, claim),
        "topologySpreadConstraints": _spread(template, selector, claim),
        "nodeSelector": template.node_selector,
        "tolerations": [dumped(one) for one in template.tolerations or []],
        "priorityClassName": template.priority_class_name,
        "serviceAccountName": template.service_account_name,
    }
    return {name: value for name, value in made.items() if value}


def _affinity(template: PodTemplate, selector: dict[str, str], claim: str | None) -> Object:
    made = dumped(template.affinity) if template.affinity else {}
    if claim is not None:
        # The first of them fits its own term, so it may run anywhere.
        _add(made, "podAffinity", _REQUIRED, _term(_HOST, {CLAIM: claim_mark(claim)}))
    else:
        # No spreading by host: where nodes lack one of the labels that pods spread by, as they
        # often lack the zone's, the scheduler heeds none of them.
        far = {"weight": 100, "podAffinityTerm": _term(_HOST, selector)}
        _add(made, "podAntiAffinity", _PREFERRED, far)
    return made


def _term(key: str, labels: dict[str, str]) -> Object:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key}


def _add(affinity: Object, kind: str, when: str, term: Object) -> None:
    affinity.setdefault(kind, {}).setdefault(when, []).append(term)


def _spread(template: PodTemplate, selector: dict[str, str], claim: str | None) -> list[Object]:
    given = [
        {**dumped(one), "labelSelector": {"matchLabels": selector}}
        for one in template.topology_spread_constraints or []
    ]
    if claim is not None or any(one["topologyKey"] == _ZONE for one in given):
        return given
    zones = {
        "maxSkew": 1,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }
    return [*given, zones]
