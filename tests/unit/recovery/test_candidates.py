"""Which snapshot an engine begins with, with peers that are real HTTP servers."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from espha.ha import status_server
from espha.ha.status_server import serve_status
from espha.protocol.http import addresses
from espha.protocol.order import Cursor
from espha.protocol.status import DivergenceFacts, ReplicaStatus
from espha.recovery.candidates import MUCH_NEWER, Requirements, SnapshotCandidates
from espha.recovery.divergence import DivergenceLog
from espha.recovery.store import Header, Snapshot, SnapshotStore, check, front
from unit.recovery.samples import BODY, IDS, MODEL, REQUIREMENTS, body_of, damage, store, written

STATUS = ReplicaStatus(name="peer", in_sync=True)
Serve = Callable[[SnapshotStore | None], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve a store as a supervisor does; returns the address."""
    servers: list[ThreadingHTTPServer] = []

    def start(served: SnapshotStore | None) -> str:
        servers.append(serve_status(("127.0.0.1", 0), lambda: STATUS, served))
        return address(servers[-1])

    yield start
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(end, servers))


def end(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


def address(server: ThreadingHTTPServer) -> str:
    return f"127.0.0.1:{server.server_port}"


def candidates(
    own: SnapshotStore | None,
    peers: list[str],
    wanted: Requirements = REQUIREMENTS,
    before: int | None = None,
) -> SnapshotCandidates:
    return SnapshotCandidates(own, peers, wanted, Path(mkdtemp()), before)


def found(tried: SnapshotCandidates) -> list[int]:
    return [candidate.header.sequence for candidate in tried.best_first()]


def test_its_own_come_newest_first(tmp_path: Path) -> None:
    assert found(candidates(store(tmp_path, 3, 9, 6), [])) == [9, 6, 3]


@pytest.mark.parametrize(("token", "fits"), [("t0ken", [9]), ("", []), ("other", [])])
def test_peers_are_shown_the_deployments_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, fits: list[int]
) -> None:
    monkeypatch.setattr(status_server._Handler, "_is_local", lambda self: False)
    peer = serve_status(("127.0.0.1", 0), lambda: STATUS, store(tmp_path, 9), token="t0ken")  # noqa: S106
    tried = candidates(None, [address(peer)])
    tried.token = token
    try:
        assert found(tried) == fits
    finally:
        end(peer)
    refused = f"that of {address(peer)}: it does not take this engine's token (ESPHA_TOKEN)"
    assert tried.refusals == ([] if fits else [refused])


def test_a_damaged_one_is_passed_over_named_and_set_aside(tmp_path: Path) -> None:
    own = store(tmp_path, 3, 9)
    newest = own.files()[0]
    damage(newest)
    tried = candidates(own, [])
    assert found(tried) == [3]
    assert tried.refusals == [f"{newest.name}: the checksum of its body is wrong"]
    assert newest not in own.files()


@pytest.mark.parametrize(
    ("changes", "requirements", "reason"),
    [
        (
            {"model": "x" * 64},
            REQUIREMENTS,
            "it is of model xxxxxxxxxxxx, this one is mmmmmmmmmmmm",
        ),
        ({"topics": {**IDS, "p.M": "old"}}, REQUIREMENTS, "topic p.M is another one than then"),
        ({"inputs": {"q.I": Cursor(1, 1)}}, REQUIREMENTS, "topic q.I is no input of this model"),
        (
            {},
            Requirements(MODEL, "p.M", IDS, {"p.I": 0, "p.M": 20}),
            "topic p.M: records 18 to 19 come next after it, and retention has removed them",
        ),
        (
            {},
            Requirements(MODEL, "p.M", IDS, {"p.I": 29, "p.M": 18}),
            "topic p.I: records 28 to 28 come next after it, and retention has removed them; "
            "`espha skip` lets engines go on behind them",
        ),
        (
            {},
            REQUIREMENTS._replace(end={"p.M": 16, "p.I": 99}),
            "topic p.M ends at offset 16, and the snapshot stands for all before 18: "
            "the topic has lost its end",
        ),
        (
            {},
            REQUIREMENTS._replace(end={"p.M": 99, "p.I": 26}),
            "topic p.I ends at offset 26, and the snapshot stands for all before 28: "
            "the topic has lost its end",
        ),
    ],
)
def test_one_that_does_not_fit_is_passed_over(
    tmp_path: Path, changes: dict[str, Any], requirements: Requirements, reason: str
) -> None:
    own = store(tmp_path)
    written(own, 9, **changes)
    tried = candidates(own, [], requirements)
    assert found(tried) == []
    assert tried.refusals[0].endswith(reason)


class Newer(Header):
    """That of an espha that says more."""

    more: int = 1


@pytest.mark.parametrize("newer", ["format", "field"])
def test_one_of_another_format_is_there_for_the_espha_that_knows_it(
    tmp_path: Path, newer: str
) -> None:
    """Behind a roll-back; the one that wrote it may come again."""
    own = store(tmp_path)
    made = written(own, 9, since=3)
    content = made.path.read_bytes()
    if newer == "field":
        head = front(Newer(**dict(made.header)), made.offset + 20)
        made.path.write_bytes(head + content[made.offset :])
    else:
        made.path.write_bytes(content.replace(b"snapshot 2", b"snapshot 3", 1))
    tried = candidates(own, [])
    assert found(tried) == []
    assert {"format": "format is 3", "field": "does not know"}[newer] in tried.refusals[0]
    assert own.files() == [made.path]


def test_what_is_just_within_reach_fits(tmp_path: Path) -> None:
    """A marker or the end of a topic lies where reading would begin."""
    end = {"p.I": 28, "p.M": 17}
    requirements = Requirements(MODEL, "p.M", IDS, {"p.I": 28, "p.M": 18}, end)
    assert requirements.refuse(written(store(tmp_path), 9).header) is None


@pytest.mark.parametrize(
    ("resumed", "fits"), [({}, False), ({"p.I": 39}, False), ({"p.I": 40}, True)]
)
def test_input_that_is_gone_may_be_left_out_by_the_order_log(
    tmp_path: Path, resumed: dict[str, int], fits: bool
) -> None:
    """The file stays in use: people may yet have the engines go on behind what is gone."""
    asked: list[int] = []

    def behind(offset: int) -> dict[str, int]:
        asked.append(offset)
        return resumed

    own = store(tmp_path, 9)
    wanted = Requirements(MODEL, "p.M", IDS, {"p.I": 40, "p.M": 18}, resumed=behind)
    assert found(candidates(own, [], wanted)) == ([9] if fits else [])
    assert asked == [18]
    assert len(own.files()) == 1


def test_without_its_own_a_peers_is_taken_and_kept(tmp_path: Path, serve: Serve) -> None:
    own = store(tmp_path / "own")
    peer = serve(store(tmp_path / "peer", 4, 5))
    (taken,) = candidates(own, [peer]).best_first()
    assert (taken.header.sequence, body_of(taken)) == (5, BODY)
    assert [taken.path] == own.files()


def test_without_a_volume_a_peers_is_taken(tmp_path: Path, serve: Serve) -> None:
    assert found(candidates(None, [serve(store(tmp_path, 4))])) == [4]


def test_with_a_full_volume_a_peers_is_taken_all_the_same(tmp_path: Path, serve: Serve) -> None:
    """A folder that is gone stands for a volume that cannot be written to."""
    own, peer = store(tmp_path / "own"), serve(store(tmp_path / "peer", 4))
    own.folder.rmdir()
    assert found(candidates(own, [peer])) == [4]


@pytest.mark.parametrize(
    ("ahead", "order"), [(MUCH_NEWER - 1, ["own", "peer"]), (MUCH_NEWER, ["peer", "own"])]
)
def test_a_peers_comes_first_when_it_is_much_newer(
    tmp_path: Path, serve: Serve, ahead: int, order: list[str]
) -> None:
    own = store(tmp_path / "own", 10)
    peer = serve(store(tmp_path / "peer", 10 + ahead))
    cursors = {10: "own", 10 + ahead: "peer"}
    assert [cursors[at] for at in found(candidates(own, [peer]))] == order


def test_peers_that_fail_cost_a_refusal_each(tmp_path: Path, serve: Serve) -> None:
    """Silent, without a snapshot, with a damaged one, and a good one; a foreign one is not sent."""
    damaged, foreign = store(tmp_path / "damaged", 9), store(tmp_path / "foreign")
    damage(damaged.files()[0])
    written(foreign, 8, model="x" * 64)
    good = store(tmp_path / "good", 7)
    gone = serve_status(("127.0.0.1", 0), lambda: STATUS)
    end(gone)
    offering = [address(gone), serve(None), serve(damaged), serve(foreign), serve(good)]
    tried = candidates(None, offering)
    assert found(tried) == [7]
    reasons = sorted(refusal.split(": ", 1)[1] for refusal in tried.refusals)
    assert [reason[:15] for reason in reasons] == [
        "[Errno 111] Con",
        "the checksum of",
    ]


def test_a_peer_that_ends_in_the_middle_is_passed_over(tmp_path: Path, serve: Serve) -> None:
    cut = store(tmp_path, 9)
    path = cut.files()[0]
    path.write_bytes(path.read_bytes()[:-10])
    tried = candidates(None, [serve(cut)])
    assert found(tried) == []
    assert "ends too early" in tried.refusals[0]


def test_after_a_divergence_only_older_ones_count(tmp_path: Path, serve: Serve) -> None:
    own = store(tmp_path / "own", 3, 6)
    peer = serve(store(tmp_path / "peer", 5, 8))
    assert found(candidates(own, [peer], before=6)) == [3, 5]


def test_a_name_stands_for_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a headless Service does; a name that nobody knows is passed over."""

    def resolve(host: str, port: int, type: int) -> list[Any]:
        if host == "nobody":
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", ("10.0.0.1", port)), (0, 0, 0, "", ("fd00::2", port, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    found = addresses("nobody:1, e-heads.ns.svc:8080,")
    assert found == ["10.0.0.1:8080", "[fd00::2]:8080"]


def test_a_divergence_goes_back_and_then_looks_ahead(tmp_path: Path) -> None:
    """First before the record that differs; the same once more is nothing that going back mends."""
    own = store(tmp_path, 2, 4, 6, 8)
    DivergenceLog(own).diverged(9, 4, "record 9")
    again = DivergenceLog(own)
    assert (again.last.before, again.last.total) == (9, 1)
    assert [path.name[-7:] for path in own.files()] == ["2.espha"]
    again.diverged(9, 2, "record 9 again")
    last = DivergenceLog(own).last
    assert (last.before, last.behind) == (None, 9)
    assert [path.name[-7:] for path in own.files()] == ["2.espha"], "there may be nothing else"
    again.diverged(9, 0, "record 9 once more")
    assert DivergenceLog(own).facts() == DivergenceFacts(
        diverged_total=3, diverged="record 9 once more", diverged_at=9
    )
    assert DivergenceLog(own).last.behind == 9
    DivergenceLog(own).settle()
    assert DivergenceLog(own).last.behind is None
    assert DivergenceLog(own).facts().diverged_total == 3


def test_a_damaged_note_of_divergence_stops_nothing(tmp_path: Path) -> None:
    own = store(tmp_path)
    DivergenceLog(own).diverged(9, 0, "x")
    (tmp_path / "diverged.json").write_text("{")
    assert DivergenceLog(own).facts() == DivergenceFacts()


def post(at: str, path: str) -> int:
    connection = http.client.HTTPConnection(at, timeout=5)
    connection.request("POST", path)
    return connection.getresponse().status


def test_a_snapshot_can_be_asked_for(tmp_path: Path) -> None:
    asked = threading.Event()

    def ask() -> bool:
        asked.set()
        return True

    server = serve_status(("127.0.0.1", 0), lambda: STATUS, store(tmp_path), ask)
    assert post(address(server), "/snapshot") == 202
    assert asked.is_set()
    assert post(address(server), "/other") == 404
    end(server)


def test_nobody_is_asked_without_a_volume_or_an_engine(tmp_path: Path, serve: Serve) -> None:
    assert post(serve(None), "/snapshot") == 409
    assert post(serve(store(tmp_path)), "/snapshot") == 503


def test_a_candidate_is_a_whole_snapshot(tmp_path: Path) -> None:
    first: Snapshot = next(candidates(store(tmp_path, 1), []).best_first())
    assert first == check(first.path)
