"""What the webhook refuses, with which sentence, and what it lets through."""

from pathlib import Path
from typing import Any

import pytest

from espha_operator.api.images import Images
from espha_operator.webhook import review
from espha_operator.webhook.review import Request, Response
from unit.operator import samples

Object = dict[str, Any]
GOOD = (Path(__file__).parents[3] / "manifests" / "models" / "ha-project.xml").read_text()
BAD = GOOD.replace('target="outbound"', 'target="nowhere"')
TORN = "<project name='p'>\n<contqueries>"


def resource(xml: str | None = GOOD, **spec: Any) -> Object:
    model = {} if xml is None else {"model": {"inline": xml}}
    return {"metadata": {"name": "demo", "namespace": "shop"}, "spec": {**model, **spec}}


def ask(new: Object, old: Object | None = None, maps: dict[str, Object] | None = None) -> Response:
    operation = "CREATE" if old is None else "UPDATE"
    request = Request.model_validate(
        {"uid": "1", "operation": operation, "object": new, "oldObject": old}
    )
    found = maps or {}
    return review.deployment(request, Images(), lambda space, name: found.get(f"{space}/{name}"))


def refusal(answer: Response) -> str:
    assert not answer.allowed
    assert answer.status
    assert answer.status.code == 422
    return answer.status.message


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (resource(TORN), ["spec.model.inline", "line 2"]),
        (resource(BAD), ["edge", "nowhere", "line"]),
        (
            resource(GOOD.replace("window-functional", "window-train")),
            ["window-train", "outbound", "line"],
        ),
        (
            resource(adapters={"outputs": [{**samples.ADAPTERS["outputs"][0], "window": "cq/x"}]}),
            ['spec.adapters.outputs "result"', "cq/x", "cq/outbound"],
        ),
        (resource(zookeeper={"tickTime": 501}), ["spec.zookeeper.tickTime"]),
    ],
    ids=["torn", "edge to nowhere", "unsupported window", "unknown window", "spec"],
)
def test_what_cannot_run_is_refused_with_element_and_line(spec: Object, words: list[str]) -> None:
    message = refusal(ask(spec))
    assert [word for word in words if word not in message] == []
    changed = refusal(ask(spec, resource()))
    assert changed == message


def test_what_can_run_passes_in_silence() -> None:
    assert ask(resource(GOOD, **samples.FULL)) == Response(uid="1", allowed=True)
    assert ask(resource(), resource(BAD)) == Response(uid="1", allowed=True)


def test_what_was_wrong_before_does_not_stand_in_the_way() -> None:
    """Scaling, and taking a finalizer away, must not fail because of a model."""
    answer = ask(resource(BAD, engines={"replicas": 5}), resource(BAD))
    assert answer.allowed
    assert "nowhere" in answer.warnings[0]
    strange = resource(zookeeper={"tickTime": 501})
    marked = {**strange, "metadata": {**strange["metadata"], "finalizers": []}}
    assert ask(marked, strange).allowed
    leaving = resource(TORN)
    leaving["metadata"]["deletionTimestamp"] = "now"
    assert ask(leaving, resource()).allowed


def test_a_bad_model_is_not_changed_into_another_bad_one() -> None:
    assert "line 2" in refusal(ask(resource(TORN), resource(BAD)))
    assert "cq/x" in refusal(
        ask(
            resource(adapters={"outputs": [{**samples.ADAPTERS["outputs"][0], "window": "cq/x"}]}),
            resource(),
        )
    )


def test_a_config_map_may_come_later_but_not_wrong() -> None:
    wanted = resource(None, model={"configMap": {"name": "m"}})
    late = ask(wanted)
    assert (late.allowed, late.warnings) == (
        True,
        ['There is no ConfigMap "m". Nothing starts before there is one.'],
    )
    assert ask(wanted, maps={"shop/m": {"data": {"other": ""}}}).warnings
    assert ask(wanted, maps={"shop/m": {"data": {"model.xml": GOOD}}}).warnings == []
    message = refusal(ask(wanted, maps={"shop/m": {"data": {"model.xml": TORN}}}))
    assert message.startswith("ConfigMap m, model.xml: ")
    assert "line 2" in message


def test_a_warning_is_short_enough_for_the_api_server() -> None:
    bad = GOOD.replace("window-functional", "window-" + 300 * "x")
    assert len(ask(resource(bad, engines={"replicas": 5}), resource(bad)).warnings[0]) <= 256


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, {"model.xml": TORN}, ["model.xml", "line 2"]),
        ({"model.xml": GOOD}, {"model.xml": BAD}, ["nowhere", "line"]),
        (None, {"model.xml": GOOD, "other.xml": TORN}, ["other.xml", "line 2"]),
        (None, {"model.xml": GOOD, "notes.txt": "<"}, []),
        ({"model.xml": TORN}, {"model.xml": TORN, "a": "b"}, []),
        (None, None, []),
    ],
    ids=["torn", "changed", "second key", "another file", "bad before", "empty"],
)
def test_config_maps_with_models(
    old: dict[str, str] | None, new: dict[str, str] | None, words: list[str]
) -> None:
    meta = {"name": "m", "labels": {"espha.dev/model": "true"}}
    request = Request.model_validate(
        {
            "uid": "2",
            "operation": "UPDATE" if old else "CREATE",
            "object": {"metadata": meta, "data": new},
            "oldObject": {"metadata": meta, "data": old} if old else None,
        }
    )
    answer = review.config_map(request)
    if not words:
        assert answer == Response(uid="2", allowed=True)
        return
    message = refusal(answer)
    assert [word for word in words if word not in message] == []


def test_a_config_map_is_checked_when_it_gets_the_label() -> None:
    new = {"metadata": {"labels": {"espha.dev/model": "true"}}, "data": {"model.xml": TORN}}
    old = {"metadata": {"labels": {"espha.dev/model": "false"}}, "data": {"model.xml": TORN}}
    for before in (old, {**old, "metadata": {}}):
        request = {"uid": "2", "operation": "UPDATE", "object": new, "oldObject": before}
        assert "line 2" in refusal(review.config_map(Request.model_validate(request)))


def test_a_deletion_is_nobodys_business() -> None:
    request = Request.model_validate(
        {"uid": "3", "operation": "DELETE", "oldObject": resource(BAD)}
    )
    assert review.deployment(request, Images(), lambda *_: None).allowed
    assert review.config_map(request).allowed
