"""The webhook serves with its own certificate, and says so when it does not."""

import asyncio
import base64
import copy
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from kubernetes.client.exceptions import ApiException

from espha_operator.api.images import Images
from espha_operator.webhook import certificates, keeper, server
from espha_operator.webhook.certificates import LIFETIME
from espha_operator.webhook.keeper import CONFIG_MAPS, DEPLOYMENTS, Webhook
from espha_operator.webhook.registration import CONFIGURATION, WebhookSettings
from espha_operator.webhook.review import Request, Response

Object = dict[str, Any]
SECRET = ("Secret", "espha-system", "hook")
REGISTERED = (CONFIGURATION, "", "espha-system-hook")


class _Cluster:
    """The two objects of the chart, with versions as the API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {
            SECRET: {"metadata": {"name": "hook", "resourceVersion": "1"}},
            REGISTERED: {
                "metadata": {"name": "espha-system-hook", "resourceVersion": "1"},
                "webhooks": [
                    {"name": "a", "clientConfig": {"service": {"name": "hook"}}},
                    {"name": "b", "clientConfig": {"service": {"name": "hook"}}},
                ],
            },
        }
        self.writes = 0
        self.away = False

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        if self.away:
            raise OSError("the API server is away")
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        thing = self.objects[kind, namespace, name]
        if change["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
            raise ApiException(status=409, reason="Conflict")
        self.writes += 1
        thing["metadata"]["resourceVersion"] += "1"
        thing.update({key: value for key, value in change.items() if key != "metadata"})

    def bundles(self) -> set[str]:
        configs = [one["clientConfig"] for one in self.objects[REGISTERED]["webhooks"]]
        return {base64.b64decode(one.get("caBundle", "")).decode() for one in configs}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class _Play:
    """A webhook on loopback."""

    def __init__(self) -> None:
        self.cluster, self.now = _Cluster(), datetime.now(UTC)
        self.settings = WebhookSettings(
            service="hook",
            namespace="espha-system",
            secret="hook",  # noqa: S106 - its name
            configuration="espha-system-hook",
            port=free_port(),
        )
        self.webhook = Webhook(
            self.cluster,  # type: ignore[arg-type]
            Images(),
            self.settings,
            lambda: self.now,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.webhook.run("127.0.0.1"))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.005)

    async def post(self, path: str, data: bytes) -> tuple[int, str]:
        """Ask as the API server does: with the name of the Service, and the bundle's trust."""
        (bundle,) = self.cluster.bundles()
        context = ssl.create_default_context(cadata=bundle)
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"https://127.0.0.1:{self.settings.port}{path}",
                data=data,
                ssl=context,
                server_hostname="hook.espha-system.svc",
            ) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> _Play:
    monkeypatch.setattr(keeper, "AGAIN", 0.01)
    monkeypatch.setattr(keeper, "SOON", 0.01)
    return _Play()


def run(play: _Play, part: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with play.running():
            await part()

    asyncio.run(whole())


def review(**request: Any) -> bytes:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**body, "request": {"uid": "7", **request}}).encode()


def test_it_makes_a_certificate_once_and_answers_with_it(play: _Play) -> None:
    async def part() -> None:
        await play.until(lambda: not play.webhook.trouble)
        assert play.cluster.writes == 2
        bad = {"metadata": {"name": "d"}, "spec": {"model": {"inline": "<project"}}}
        code, text = await play.post(DEPLOYMENTS, review(operation="CREATE", object=bad))
        answer = json.loads(text)
        assert (code, answer["kind"]) == (200, "AdmissionReview")
        assert (answer["response"]["uid"], answer["response"]["allowed"]) == ("7", False)
        assert "line 1" in answer["response"]["status"]["message"]
        code, text = await play.post(CONFIG_MAPS, review(operation="CREATE", object={}))
        assert json.loads(text)["response"] == {"uid": "7", "allowed": True, "warnings": []}
        assert play.cluster.writes == 2

    run(play, part)


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        (DEPLOYMENTS, b"x", 400),
        (DEPLOYMENTS, b"[]", 400),
        (DEPLOYMENTS, b'{"request": {"uid": "1"}}', 400),
        (DEPLOYMENTS, b" " * (server.LARGEST + 1), 413),
        ("/elsewhere", b"{}", 404),
    ],
    ids=["no JSON", "no object", "no operation", "too large", "no such path"],
)
def test_nonsense_gets_a_number_and_ends_nothing(
    play: _Play, path: str, data: bytes, code: int
) -> None:
    async def part() -> None:
        await play.until(lambda: not play.webhook.trouble)
        assert (await play.post(path, data))[0] == code
        assert (await play.post(CONFIG_MAPS, review(operation="DELETE")))[0] == 200

    run(play, part)


def test_a_certificate_is_renewed_while_it_serves(play: _Play) -> None:
    play.now -= LIFETIME * 3 / 4

    async def part() -> None:
        await play.until(lambda: not play.webhook.trouble)
        first = play.cluster.bundles()
        play.now += LIFETIME * 3 / 4
        await play.until(lambda: play.cluster.bundles() != first)
        await play.until(lambda: play.cluster.writes == 4)
        assert (await play.post(CONFIG_MAPS, review(operation="DELETE")))[0] == 200
        (bundle,) = play.cluster.bundles()
        assert bundle.count("BEGIN CERTIFICATE") == 2

    run(play, part)


def test_what_others_do_to_the_bundle_is_undone(play: _Play) -> None:
    async def part() -> None:
        await play.until(lambda: not play.webhook.trouble)
        good = play.cluster.bundles()
        for one in play.cluster.objects[REGISTERED]["webhooks"]:
            one["clientConfig"]["caBundle"] = base64.b64encode(b"other").decode()
        await play.until(lambda: play.cluster.bundles() == good)

    run(play, part)


@pytest.mark.parametrize("thing", [SECRET, REGISTERED], ids=["secret", "configuration"])
def test_a_missing_object_is_said_and_may_come_back(
    play: _Play, thing: tuple[str, str, str]
) -> None:
    lost = play.cluster.objects.pop(thing)

    async def part() -> None:
        await play.until(lambda: f"there is no {thing[0]} {thing[2]}" in play.webhook.trouble)
        play.cluster.objects[thing] = lost
        await play.until(lambda: not play.webhook.trouble)

    run(play, part)


def test_it_goes_on_serving_while_the_api_server_is_away(play: _Play) -> None:
    async def part() -> None:
        await play.until(lambda: not play.webhook.trouble)
        play.cluster.away = True
        await play.until(lambda: "is away" in play.webhook.trouble)
        assert (await play.post(CONFIG_MAPS, review(operation="DELETE")))[0] == 200
        play.cluster.away = False
        await play.until(lambda: not play.webhook.trouble)

    run(play, part)


def test_a_port_in_use_is_said_and_tried_again(play: _Play) -> None:
    async def part() -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", play.settings.port))
            other.listen()
            async with play.running():
                await play.until(lambda: "address already in use" in play.webhook.trouble)
        async with play.running():
            await play.until(lambda: not play.webhook.trouble)

    asyncio.run(part())


def serving(judge: Callable[[Request], Response], part: Callable[[str], Awaitable[None]]) -> None:
    """Serve one judge, and run a test against its address."""
    made = server.Server({"/x": judge})
    made.show(certificates.make(("hook.espha-system.svc",), datetime.now(UTC)))

    async def whole() -> None:
        async with made.serving("127.0.0.1", 0) as port:
            await part(f"https://127.0.0.1:{port}/x")

    asyncio.run(whole())


async def status(session: aiohttp.ClientSession, address: str) -> int:
    data = review(operation="CREATE", object={})
    async with session.post(address, data=data, ssl=False) as answer:
        return answer.status


def test_slow_judges_and_crowds_are_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a number that makes the API server go on: the webhook fails open."""
    monkeypatch.setattr(server, "ANSWER", 0.2)
    gate = threading.Event()

    def slow(request: Request) -> Response:
        gate.wait(20)
        return Response(uid=request.uid, allowed=True)

    async def part(address: str) -> None:
        async with aiohttp.ClientSession() as session:
            crowd = [status(session, address) for _ in range(server.AT_ONCE + 3)]
            answers = sorted(await asyncio.gather(*crowd))
            gate.set()
        assert set(answers) == {503, 504}
        assert answers.count(504) == server.AT_ONCE

    serving(slow, part)


def test_a_bug_in_a_judge_is_an_error_of_that_request(caplog: pytest.LogCaptureFixture) -> None:
    def broken(request: Request) -> Response:
        raise KeyError(request.uid)

    async def part(address: str) -> None:
        async with aiohttp.ClientSession() as session:
            assert await status(session, address) == 500
            assert await status(session, address) == 500

    serving(broken, part)
