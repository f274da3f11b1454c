"""What does not run yet as it is wanted now: StatefulSets, their pods, the engines' model."""

from collections.abc import Iterator

from espha_operator.status.facts import Facts


def missing(facts: Facts) -> list[str]:
    """Return a sentence for each thing that is wanted in the end, and does not exist yet."""
    adapters = (one.label for one in facts.deployment.spec.adapters.every)
    parts = ("engine", *adapters)
    return [f"{part} has not been started." for part in parts if not facts.exists(part)]


def behind(facts: Facts) -> list[str]:
    """Return a sentence for each thing that exists, and is not what is wanted now.

    What the operator applied in this very step counts as well: the StatefulSet as it was read
    does not carry the fingerprint of what is wanted.
    """
    rolling = [facts.rolling] if facts.rolling else []
    return [*rolling, *_sets(facts), *_images(facts), *_models(facts)]


def _sets(facts: Facts) -> Iterator[str]:
    for name, promise in facts.promised.items():
        there = facts.sets.get(name)
        if there is None:
            continue
        if there.applied != promise.applied:
            yield f"{name} is not yet what the spec says."
        elif there.behind or there.exist < there.wanted:
            fresh = there.exist - there.behind
            yield f"{name}: {fresh} of {there.wanted} pods are up to date."
        elif there.exist > there.wanted:
            yield f"{name}: {there.exist} pods are there, {there.wanted} are wanted."


def _images(facts: Facts) -> Iterator[str]:
    for pod, image in sorted(facts.images.items()):
        promise = facts.promised.get(pod.rpartition("-")[0])
        if promise and image and image != promise.image:
            yield f"{pod} runs the image {image}."


def _models(facts: Facts) -> Iterator[str]:
    wanted = facts.planned
    for one in facts.engines:
        if wanted and one.engine and one.engine.model_digest != wanted.digest:
            yield f"{one.name} runs the model {one.engine.model}."
