"""Which snapshot an engine begins with, with peers that are real HTTP servers."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from espha.ha.status_server import serve_status
from espha.protocol.http import addresses
from espha.protocol.order import Cursor
from espha.protocol.status import DivergenceFacts, ReplicaStatus
from espha.recovery.candidates import MUCH_NEWER, Requirements, SnapshotCandidates
from espha.recovery.divergence import DivergenceLog
from espha.recovery.store import Snapshot, SnapshotStore
from unit.recovery.samples import IDS, MODEL, REQUIREMENTS, damage, snapshot, store

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


def found(candidates: SnapshotCandidates) -> list[int]:
    return [candidate.header.sequence for candidate in candidates.best_first()]


def test_its_own_come_newest_first(tmp_path: Path) -> None:
    assert found(SnapshotCandidates(store(tmp_path, 3, 9, 6), [], REQUIREMENTS)) == [9, 6, 3]


def test_a_damaged_one_is_passed_over_named_and_set_aside(tmp_path: Path) -> None:
    own = store(tmp_path, 3, 9)
    newest = own.files()[0]
    damage(newest)
    candidates = SnapshotCandidates(own, [], REQUIREMENTS)
    assert found(candidates) == [3]
    assert candidates.refusals == [f"{newest.name}: the checksum of its body is wrong"]
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
            "topic p.I: records 28 to 28 come next after it, and retention has removed them",
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
    own.write(snapshot(9, **changes))
    candidates = SnapshotCandidates(own, [], requirements)
    assert found(candidates) == []
    assert candidates.refusals[0].endswith(reason)


def test_what_is_just_within_reach_fits() -> None:
    """A marker or the end of a topic lies where reading would begin."""
    end = {"p.I": 28, "p.M": 17}
    requirements = Requirements(MODEL, "p.M", IDS, {"p.I": 28, "p.M": 18}, end)
    assert requirements.refuse(snapshot(9).header) == ""


def test_without_its_own_a_peers_is_taken_and_kept(tmp_path: Path, serve: Serve) -> None:
    own = store(tmp_path / "own")
    peer = serve(store(tmp_path / "peer", 4, 5))
    assert list(SnapshotCandidates(own, [peer], REQUIREMENTS).best_first()) == [snapshot(5)]
    assert [own.read(path) for path in own.files()] == [snapshot(5)]


def test_without_a_volume_a_peers_is_taken(tmp_path: Path, serve: Serve) -> None:
    assert found(SnapshotCandidates(None, [serve(store(tmp_path, 4))], REQUIREMENTS)) == [4]


@pytest.mark.parametrize(
    ("ahead", "order"), [(MUCH_NEWER - 1, ["own", "peer"]), (MUCH_NEWER, ["peer", "own"])]
)
def test_a_peers_comes_first_when_it_is_much_newer(
    tmp_path: Path, serve: Serve, ahead: int, order: list[str]
) -> None:
    own = store(tmp_path / "own", 10)
    peer = serve(store(tmp_path / "peer", 10 + ahead))
    cursors = {10: "own", 10 + ahead: "peer"}
    assert [cursors[at] for at in found(SnapshotCandidates(own, [peer], REQUIREMENTS))] == order


def test_peers_that_fail_cost_a_refusal_each(tmp_path: Path, serve: Serve) -> None:
    """Silent, without a snapshot, with a damaged one, with one of another model, and a good one."""
    damaged, foreign = store(tmp_path / "damaged", 9), store(tmp_path / "foreign")
    damage(damaged.files()[0])
    foreign.write(snapshot(8, model="x" * 64))
    good = store(tmp_path / "good", 7)
    gone = serve_status(("127.0.0.1", 0), lambda: STATUS)
    end(gone)
    offering = [address(gone), serve(None), serve(damaged), serve(foreign), serve(good)]
    candidates = SnapshotCandidates(None, offering, REQUIREMENTS)
    assert found(candidates) == [7]
    reasons = sorted(refusal.split(": ", 1)[1] for refusal in candidates.refusals)
    assert [reason[:15] for reason in reasons] == [
        "[Errno 111] Con",
        "it is of model ",
        "the checksum of",
    ]


def test_a_peer_that_ends_in_the_middle_is_passed_over(tmp_path: Path, serve: Serve) -> None:
    cut = store(tmp_path, 9)
    path = cut.files()[0]
    path.write_bytes(path.read_bytes()[:-10])
    candidates = SnapshotCandidates(None, [serve(cut)], REQUIREMENTS)
    assert found(candidates) == []
    assert "ends too early" in candidates.refusals[0]


def test_after_a_divergence_only_older_ones_count(tmp_path: Path, serve: Serve) -> None:
    own = store(tmp_path / "own", 3, 6)
    peer = serve(store(tmp_path / "peer", 5, 8))
    assert found(SnapshotCandidates(own, [peer], REQUIREMENTS, before=6)) == [3, 5]


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
    assert (last.before, last.behind, own.files()) == (None, 9, [])
    again.diverged(9, 0, "record 9 once more")
    assert DivergenceLog(own).facts() == DivergenceFacts(
        diverged_total=3, diverged="record 9 once more"
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
    first: Snapshot = next(SnapshotCandidates(store(tmp_path, 1), [], REQUIREMENTS).best_first())
    assert first == snapshot(1)
