"""What an upgrade of the operator does to a deployment that runs. Pure, but for whose turn it is.

The operator's version decides twice about pods: by the images that deployments do not name, and by
the templates that it makes. Both together are the deployment's `build`. A deployment keeps the
build that it has until its image policy, and its turn, allow another one: until then the objects
that make pods stay as they are. What users change is never held back.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from espha_operator.api import Spec
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import ImagePolicy, Images, Upgrades
from espha_operator.api.status import UsedImages
from espha_operator.reconcile import plan
from espha_operator.reconcile.turns import Turns
from espha_operator.resources.kafka import FORMAT
from espha_operator.resources.meta import Object, checksum
from espha_operator.status import rollout
from espha_operator.status.facts import Facts, SetFacts, Upgrade
from espha_operator.status.reasons import Reason
from espha_operator.status.storage import DiskFacts

# Applying on the server leaves what older versions had given, and the API server takes no mixture.
_ON_DELETE = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
_SAMPLE_ADAPTER = {"volume": {"claimName": "v"}, "file": {"path": "/data/x.csv"}, "name": "a"}
_SAMPLE = {
    "model": {"inline": "<project/>"},
    "adapters": {
        "inputs": [{**_SAMPLE_ADAPTER, "window": "cq/in"}],
        "outputs": [{**_SAMPLE_ADAPTER, "window": "cq/out"}],
    },
}


@dataclass(frozen=True)
class Offer:
    """What this operator makes of deployments.

    Attributes:
        images: for what the spec names none.
        build: fingerprint of its templates.
    """

    images: Images
    build: str

    @classmethod
    def of(cls, images: Images) -> "Offer":
        """Return what an operator with these images makes."""
        return cls(images, build(images))

    def used(self, inputs: str) -> UsedImages:
        """Return what a deployment uses that takes all of it."""
        return UsedImages(
            engine=self.images.engine_image,
            kafka=self.images.kafka_image,
            zookeeper=self.images.zookeeper_image,
            build=self.build,
            inputs=inputs,
        )


def build(images: Images) -> str:
    """Return a fingerprint of the templates that this operator makes, whatever the images."""
    names = {"engine_image": "e", "kafka_image": "k", "zookeeper_image": "z"}
    same = images.model_copy(update=names)
    spec = Spec.model_validate(_SAMPLE)
    model = ModelFacts("<project/>", "p", "0" * 64, "p", ("p.M",))
    sets = {f"d-{part}": SetFacts(1, 1, 1) for part in ("engine", "input-a", "output-a")}
    whole = Facts(Deployment("d", "n", "u", 1, spec, same), model, sets, disks=DiskFacts())
    return checksum(json.dumps(plan.plan(whole), sort_keys=True, default=str))


def decide(
    offer: Offer,
    policy: ImagePolicy,
    last: UsedImages | None,
    inputs: str,
    may_roll: Callable[[], bool],
) -> Upgrade:
    """Decide what a deployment is made of now.

    Args:
        offer: what this operator would make of it.
        policy: the deployment's, or the operator's.
        last: what it is made of; None: it is new.
        inputs: fingerprint of what users have asked for.
        may_roll: whether it is its turn; asked only when it matters.
    """
    wanted = offer.used(inputs)
    if last is None or _same(last, wanted):
        return Upgrade(wanted)
    asked = inputs != last.inputs
    if policy == "OnOperatorUpgrade" and (asked or may_roll()):
        # What users have asked for restarts pods anyway: once is enough.
        return Upgrade(wanted)
    used = last.model_copy(update={"build": offer.build, "inputs": inputs} if asked else {})
    if _same(used, wanted):
        return Upgrade(used)
    reason = Reason.KEPT_BY_POLICY if policy == "Manual" else Reason.WAITS_FOR_TURN
    return Upgrade(used, held=used.build != offer.build, offered=wanted, waits=reason)


def _same(one: UsedImages, other: UsedImages) -> bool:
    update = {"inputs": ""}
    return one.model_copy(update=update) == other.model_copy(update=update)


def adopted(facts: Facts, offer: Offer, inputs: str) -> UsedImages | None:
    """Return what a deployment seems to be made of that an older operator has made; None: new."""
    if not facts.sets:
        return None
    spec, wanted = facts.deployment.spec, offer.used(inputs)
    named = {"engine": spec.engines.image, "kafka": spec.kafka.image}
    named["zookeeper"] = spec.zookeeper.image
    found = {
        part: facts.set(part).image or getattr(wanted, part)
        for part, given in named.items()
        if not given
    }
    return wanted.model_copy(update={**found, "build": ""})


def inputs(facts: Facts) -> str:
    """Return a fingerprint of what users have asked for, apart from the number of engines.

    Defaults are not in it: another version of the operator, or of the CRD, may know others.
    """
    spec = facts.deployment.spec.model_dump(mode="json", exclude_defaults=True)
    spec.pop("image_policy", None)
    spec.get("engines", {}).pop("replicas", None)
    digest = facts.planned.digest if facts.planned else ""
    return checksum(json.dumps(spec, sort_keys=True), digest)


@dataclass(frozen=True)
class Holding:
    """What to do for the objects that are wanted.

    Attributes:
        wanted: those that are to be applied.
        kept: names of those that stay as they are.
        patches: what is to be merged into objects before that, by kind and name.
    """

    wanted: list[Object]
    kept: frozenset[str] = frozenset()
    patches: Mapping[tuple[str, str], Object] = field(default_factory=dict)


def hold(wanted: list[Object], facts: Facts, config_map: Callable[[str], Object | None]) -> Holding:
    """Leave out what makes pods and is there already, when an upgrade is held back.

    Args:
        wanted: all objects of the deployment.
        facts: what is known of it.
        config_map: returns the one of the deployment with a name; None: there is none.
    """
    there = facts.sets
    sets = {_name(one): one for one in wanted if one["kind"] == "StatefulSet"}
    known = {name: one for name, one in sets.items() if name in there}
    if not (facts.upgrade and facts.upgrade.held):
        own = (name for name in known if there[name].rolls_itself)
        return Holding(wanted, patches={("StatefulSet", name): _ON_DELETE for name in own})
    files = {
        _name(one): (one, config_map(_name(one)))
        for one in wanted
        if one["kind"] == "ConfigMap" and _name(one) in there
    }
    held = {("StatefulSet", name) for name in known}
    held |= {("ConfigMap", name) for name, (_, found) in files.items() if found}
    left = [one for one in wanted if (one["kind"], _name(one)) not in held]
    counts = {name: one["spec"]["replicas"] for name, one in known.items()}
    patches: dict[tuple[str, str], Object] = {
        ("StatefulSet", name): {"spec": {"replicas": count}}
        for name, count in counts.items()
        if there[name].wanted != count
    }
    for name, (one, found) in files.items():
        change = _passing(one, found)
        if change:
            patches["ConfigMap", name] = {"data": change}
    return Holding(left, frozenset(known), patches)


def _passing(wanted: Object, found: Object | None) -> dict[str, str]:
    """Return what of a ConfigMap may change at any time: what an empty volume is to begin with."""
    text = wanted["data"].get(FORMAT)
    before = ((found or {}).get("data") or {}).get(FORMAT)
    return {FORMAT: text} if found and text is not None and text != before else {}


def _name(thing: Object) -> str:
    return str(thing["metadata"]["name"])


class Upgrader:
    """Decides for all deployments of this operator."""

    def __init__(self, images: Images, settings: Upgrades | None = None) -> None:
        """Take what this operator offers, and the settings from the environment."""
        self._settings = settings or Upgrades()
        self._offer = Offer.of(images)
        self._turns = Turns(self._settings.rollout_delay)

    def upgraded(self, facts: Facts, last: UsedImages | None) -> Facts:
        """Return facts with what the deployment is made of, and with its images."""
        asked = inputs(facts)
        before = last or adopted(facts, self._offer, asked)
        if facts.planned is None or facts.paused:
            # Nothing is applied now.
            if before is None:
                return facts
            upgrade = Upgrade(before, held=self._other(before, asked))
        else:
            policy = facts.deployment.spec.image_policy or self._settings.image_policy
            turn = partial(self._turns.may_roll, _which(facts))
            upgrade = decide(self._offer, policy, before, asked, turn)
        images = self._images(upgrade.used)
        return facts.replace(upgrade=upgrade, deployment=replace(facts.deployment, images=images))

    def tell(self, facts: Facts) -> None:
        """Take in whether a deployment rolls out: others wait meanwhile."""
        self._turns.tell(_which(facts), rolling=bool(rollout.behind(facts)))

    def _other(self, used: UsedImages, asked: str) -> bool:
        return used.inputs == asked and not _same(used, self._offer.used(asked))

    def _images(self, used: UsedImages) -> Images:
        names = {"engine_image": used.engine, "kafka_image": used.kafka}
        return self._offer.images.model_copy(update={**names, "zookeeper_image": used.zookeeper})


def _which(facts: Facts) -> str:
    return f"{facts.deployment.namespace}/{facts.deployment.name}"
