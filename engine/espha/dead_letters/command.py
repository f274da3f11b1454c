"""The commands `espha dlq …` around the library: printing and exit codes."""

import json
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from espha.connectors.topics import TopicPlan
from espha.dead_letters.letters import Letter, Origin, Wanted, letter_at, letters, origin_of
from espha.dead_letters.replay import Choice, Replay, Replayed
from espha.deployment import DeploymentError, Place
from espha.kafka.reader import LogError
from espha.kafka.writer import WriterFailed

_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PAYLOAD: Final = 60
_MISSING: Final = "there is no such dead letter, or retention has removed it"


def since_ms(text: str, now_s: float | None = None) -> int:
    """Return the moment that `text` means, in ms since 1970: `90s`, `15m`, `2h`, `7d` ago, or ISO.

    Raises:
        ValueError: it means none.
    """
    if not text:
        return 0
    span = _SPAN.fullmatch(text)
    if span:
        now = time.time() if now_s is None else now_s
        return int((now - int(span[1]) * _SECONDS[span[2]]) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no moment; give 15m, 2h, 7d or 2026-11-23T12:00") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def run_list(place: Place, wanted: Wanted, limit: int, *, as_json: bool) -> int:
    """Print the newest letters that are wanted; returns 0, or 2 where that cannot be done."""

    def work() -> int:
        plan, count = place.plan(), 0
        newest: deque[Letter] = deque(maxlen=limit)
        for letter in letters(place.bootstrap, plan, wanted):
            count += 1
            newest.append(_short(letter))
        if as_json:
            for letter in newest:
                print(json.dumps(_object(letter)))
            return 0
        console = Console()
        console.print(table(newest))
        shown = f"{len(newest)} of {count}" if count > len(newest) else str(count)
        console.print(f"{shown} dead letters on {plan.dead_letters}", markup=False, highlight=False)
        return 0

    return _guarded(work)


def run_show(place: Place, numbers: Sequence[int], *, as_json: bool) -> int:
    """Print letters with all that is known; returns 1 where one is missing, 2 where it fails."""

    def work() -> int:
        plan, code = place.plan(), 0
        for number in numbers:
            letter = letter_at(place.bootstrap, plan, number)
            if letter is None:
                _complain(f"{number}: {_MISSING}")
                code = 1
                continue
            origin = origin_of(place.bootstrap, plan, letter)
            if as_json:
                print(json.dumps(_object(letter, origin)))
            else:
                _print_letter(Console(), letter, origin)
        return code

    return _guarded(work)


def run_replay(
    place: Place,
    numbers: Sequence[int],
    wanted: Wanted | None,
    choice: Choice,
    *,
    rehearse: bool,
    as_json: bool,
) -> int:
    """Replay letters; returns 0, 1 where one was refused, 2 where it cannot be done.

    Args:
        place: where the deployment is.
        numbers: which letters.
        wanted: which others; None: none.
        choice: what may be replayed.
        rehearse: only say what would be.
        as_json: print an object of JSON for each letter.
    """

    def work() -> int:
        plan = place.plan()
        done = refused = 0
        found, missing = _chosen(place, plan, numbers)
        chosen = chain(found, letters(place.bootstrap, plan, wanted) if wanted else ())
        every = Replay(place.bootstrap, plan, choice).run(chosen, rehearse=rehearse)
        for one in chain(missing, every):
            done, refused = done + (not one.refusal), refused + bool(one.refusal)
            if as_json:
                print(json.dumps({"offset": one.offset, "refused": one.refusal or None}))
            elif one.refusal:
                _complain(f"{one.offset}: {one.refusal}")
        if not as_json:
            doing = "would be replayed" if rehearse else "replayed"
            Console().print(f"{done} {doing}, {refused} refused", markup=False, highlight=False)
        return 1 if refused else 0

    return _guarded(work)


def _chosen(
    place: Place, plan: TopicPlan, numbers: Sequence[int]
) -> tuple[list[Letter], list[Replayed]]:
    """Return the letters with these numbers, and what is said of those that are not there."""
    at = {number: letter_at(place.bootstrap, plan, number) for number in dict.fromkeys(numbers)}
    missing = [Replayed(number, _MISSING) for number, letter in at.items() if letter is None]
    return [letter for letter in at.values() if letter is not None], missing


def table(found: Sequence[Letter]) -> Table:
    """Return letters as a table, one a line."""
    made = Table()
    for head in ("offset", "time (UTC)", "kind", "window", "input", "reason", "payload"):
        made.add_column(head, overflow="fold", justify="right" if head == "offset" else "left")
    for one in found:
        where = f"{one.id.topic}:{one.id.offset}" if one.id else ""
        cells = (str(one.offset), _moment(one), one.kind, one.window, where, one.reason)
        made.add_row(*(escape(_plain(cell)) for cell in (*cells, shown(one.payload))))
    return made


def shown(payload: bytes) -> str:
    """Return the beginning of a payload on one line, without characters that move the cursor."""
    text = payload[: 4 * _PAYLOAD].decode(errors="replace")
    plain = _plain(text)
    cut = len(plain) > _PAYLOAD or len(payload) > 4 * _PAYLOAD
    return plain[:_PAYLOAD] + "…" if cut else plain


def _plain(text: str, keep: str = "") -> str:
    """Return a text without characters that move the cursor."""
    return "".join(one if one.isprintable() or one in keep else "·" for one in text)


def _print_letter(console: Console, letter: Letter, origin: Origin | None) -> None:
    facts = Table(show_header=False, box=None)
    for name, value in _object(letter, origin).items():
        if name != "payload":
            facts.add_row(name, escape("" if value is None else _plain(str(value))))
    console.print(facts)
    text = letter.payload.decode(errors="replace")
    console.print(_plain(text, keep="\n\t"), markup=False, highlight=False, soft_wrap=True)
    if letter.size > len(letter.payload):
        _complain(f"only the first {len(letter.payload)} of {letter.size} bytes are left of it")


def _short(letter: Letter) -> Letter:
    """Leave so much of the payload as a list shows: many letters are in memory at a time."""
    return replace(letter, reason=letter.reason[:1000], payload=letter.payload[:1000])


def _object(letter: Letter, origin: Origin | None = None) -> dict[str, str | int | None]:
    return {
        "offset": letter.offset,
        "time": _moment(letter),
        "kind": str(letter.kind),
        "window": letter.window,
        "input": f"{letter.id.topic}:{letter.id.offset}" if letter.id else None,
        "id": letter.id.encode().decode() if letter.id else None,
        "position": origin.position if origin and origin.position else None,
        "reason": letter.reason,
        "size": letter.size,
        "payload": letter.payload.decode(errors="replace"),
    }


def _moment(letter: Letter) -> str:
    moment = datetime.fromtimestamp(letter.time_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _guarded(work: Callable[[], int]) -> int:
    try:
        return work()
    except (DeploymentError, LogError, WriterFailed) as error:
        _complain(str(error))
        return 2


def _complain(sentence: str) -> None:
    Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)
