"""The machine of a pattern: one tree of operators, many instances that walk through it.

A node of an instance is in one of five states, from bad to good:

    FAILED   cannot become true any more
    PENDING  needs more
    HOLDING  nothing is missing but the end of a time limit, until which something must not occur
    LIKELY   true by now, but a later event could make it false (`notoccur` without a limit)
    DONE     true, whatever comes

A pattern matches when its tree is LIKELY or DONE. `and` is as bad as its worst operand, `or` as
good as its best. `fby` offers an event to the operand whose turn it is; while that one is HOLDING
or LIKELY, the next one gets the event too, and when that becomes true, the former stops guarding.

Times are microseconds. A limit begins with the first event that its operator takes (`not` and
`notoccur`: when their turn comes) and is over when more than its time has passed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from espha.model.events import Value
from espha.windows.pattern.logic import Logic

FAILED, PENDING, HOLDING, LIKELY, DONE = range(5)
_SETTLED: Final = (FAILED, DONE)

Row = tuple[Value, ...]
Matcher = Callable[["Offer"], bool]
"""Whether an event of interest is this event; binds names in `offer.instance.bound`."""


class Instance:
    """One attempt to match a pattern.

    Attributes:
        number: from 0, in the order of opening; the older instance gets an event first.
        key: values of the index fields.
        bound: values of the names that expressions bind, in the order of the pattern's; None: not
            bound yet.
        rows: the event taken for each event of interest; None: none yet.
        status: state of each node; None: its turn has not come.
        since: when the limit of each node began; None: it has not.
        count: of each node, how many operands (`fby`) or events (`is`) it has passed.
    """

    __slots__ = ("bound", "count", "key", "number", "rows", "since", "status")

    def __init__(self, number: int, key: Row, tree: "Tree") -> None:
        self.number, self.key = number, key
        self.bound: Row = (None,) * tree.names
        self.rows: list[Row | None] = [None] * tree.events
        self.status: list[int | None] = [None] * tree.nodes
        self.since: list[int | None] = [None] * tree.nodes
        self.count: list[int] = [0] * tree.nodes

    def state(self) -> Any:
        """Return everything, as plain data."""
        lists: list[list[Any]] = [self.rows, self.status, self.since, self.count]
        return (self.number, self.key, self.bound, *[tuple(each) for each in lists])

    def restore(self, state: Any) -> None:
        """Become the instance that returned `state`."""
        self.number, self.key, self.bound, *lists = state
        self.rows, self.status, self.since, self.count = map(list, lists)


class Offer:
    """An event (or only the time) that is offered to the nodes of an instance.

    Attributes:
        port: which input it comes from; -1: there is no event.
        row: its values.
        time: microseconds.
        clock: milliseconds, for expressions that ask for the time.
        taken: whether an event of interest took it.
        moved: whether anything in the instance has changed that a limit could depend on.
    """

    __slots__ = ("clock", "instance", "moved", "port", "row", "taken", "time")

    def __init__(self, instance: Instance, port: int, row: Row, time: int, clock: int = 0) -> None:
        self.instance, self.port, self.row = instance, port, row
        self.time, self.clock = time, clock
        self.taken = self.moved = False


class Node:
    """An operator or an event of interest; what it remembers is in the instance."""

    def __init__(self, place: int, logic: Logic, parts: Sequence["Node"]) -> None:
        self.place, self.limit, self.parts = place, logic.limit, parts

    def start(self, offer: Offer) -> None:
        """Begin: the node's turn has come."""
        instance = offer.instance
        offer.moved = True
        status = self._start(offer)
        instance.status[self.place] = status
        if self.limit is not None and status >= HOLDING:
            instance.since[self.place] = offer.time

    def take(self, offer: Offer) -> int:
        """Look at an event; return the new state."""
        instance, before = offer.instance, offer.taken
        offer.taken = False
        status = self._take(offer)
        if offer.taken and self.limit is not None and instance.since[self.place] is None:
            instance.since[self.place] = offer.time
        offer.taken |= before
        if instance.status[self.place] != status:
            instance.status[self.place] = status
            offer.moved = True
        return status

    def lapse(self, offer: Offer) -> int | None:
        """Let the time `offer.time` be over; return the new state."""
        instance = offer.instance
        status = instance.status[self.place]
        if status is None or status in _SETTLED:
            return status
        status = self._lapse(offer)
        since = instance.since[self.place]
        if since is not None and self.limit is not None and since + self.limit <= offer.time:
            status = self._over(status)
        instance.status[self.place] = status
        return status

    def deadline(self, instance: Instance) -> int | None:
        """Return when the first of the running limits ends; None: none is running."""
        status = instance.status[self.place]
        if status is None or status in _SETTLED:
            return None
        first = None
        for part in self.parts:
            end = part.deadline(instance)
            if end is not None and (first is None or end < first):
                first = end
        since = instance.since[self.place]
        if since is not None and self.limit is not None:
            end = since + self.limit
            if first is None or end < first:
                first = end
        return first

    def reset(self, instance: Instance) -> None:
        """Forget everything but the rows."""
        instance.status[self.place] = instance.since[self.place] = None
        instance.count[self.place] = 0
        for part in self.parts:
            part.reset(instance)

    def _start(self, offer: Offer) -> int:
        return PENDING

    def _take(self, offer: Offer) -> int:
        raise NotImplementedError

    def _lapse(self, offer: Offer) -> int:
        raise NotImplementedError

    def _over(self, status: int) -> int:
        return DONE if status >= HOLDING else FAILED


class EventNode(Node):
    """Waits for one event of interest."""

    def __init__(self, place: int, logic: Logic, event: int, matches: Matcher) -> None:
        super().__init__(place, logic, ())
        self._event, self._matches = event, matches

    def _take(self, offer: Offer) -> int:
        if not self._matches(offer):
            return PENDING
        offer.instance.rows[self._event] = offer.row
        offer.taken = True
        return DONE

    def _lapse(self, offer: Offer) -> int:
        return PENDING


class AllNode(Node):
    """`and`, and with `best` set to max, `or`."""

    def __init__(
        self, place: int, logic: Logic, parts: Sequence[Node], best: Callable[..., int]
    ) -> None:
        super().__init__(place, logic, parts)
        self._best = best

    def _start(self, offer: Offer) -> int:
        status = offer.instance.status
        for part in self.parts:
            part.start(offer)
        return self._best([status[part.place] for part in self.parts])

    def _take(self, offer: Offer) -> int:
        status = offer.instance.status
        states = []
        for part in self.parts:
            now = status[part.place]
            states.append(now if now in _SETTLED else part.take(offer))
        return self._best(states)

    def _lapse(self, offer: Offer) -> int:
        return self._best([part.lapse(offer) for part in self.parts])


class FollowedBy(Node):
    """`fby`: `count` is the operand whose turn it is."""

    def _start(self, offer: Offer) -> int:
        return self._status(offer)

    def _take(self, offer: Offer) -> int:
        return self._walk(offer, lapse=False)

    def _lapse(self, offer: Offer) -> int:
        return self._walk(offer, lapse=True)

    def _walk(self, offer: Offer, *, lapse: bool) -> int:
        instance, place = offer.instance, offer.instance.count[self.place]
        while place < len(self.parts) and not offer.taken:
            part = self.parts[place]
            if instance.status[part.place] is None:
                part.start(offer)
            status = instance.status[part.place]
            if status != DONE:
                status = part.lapse(offer) if lapse else part.take(offer)
            if status == FAILED:
                return FAILED
            if status == PENDING:
                self._turn_back(instance, place + 1)
                return PENDING
            place += 1
            self._pass(instance, place if status == DONE else place - 1, offer.taken)
        return self._status(offer)

    def _pass(self, instance: Instance, place: int, taken: bool) -> None:
        """Pass what is before `place`, unless a guard is still there."""
        passed = self.parts[instance.count[self.place] : place]
        if taken or all(instance.status[part.place] == DONE for part in passed):
            for part in passed:
                instance.status[part.place] = DONE
            instance.count[self.place] = max(place, instance.count[self.place])

    def _turn_back(self, instance: Instance, place: int) -> None:
        """Forget the turns from `place` on: an `or` before them has lost what let them begin."""
        for part in self.parts[place:]:
            if instance.status[part.place] is None:
                return
            part.reset(instance)

    def _status(self, offer: Offer) -> int:
        """Return the worst state of what is not passed yet, after its turn has come."""
        instance, worst = offer.instance, DONE
        for part in self.parts[instance.count[self.place] :]:
            status = instance.status[part.place]
            if status is None:
                part.start(offer)
                status = instance.status[part.place]
            worst = min(worst, FAILED if status is None else status)
            if worst <= PENDING:
                break
        return worst


class Absent(Node):
    """`not` and `notoccur`.

    Under a limit of an operator around it, it is HOLDING until that limit ends it; under a limit
    of its own it is PENDING until then, so nothing goes past it. Without any, `not` is decided by
    the next event, `notoccur` is LIKELY from the next event on.
    """

    def __init__(self, place: int, logic: Logic, parts: Sequence[Node], limited: bool) -> None:
        super().__init__(place, logic, parts)
        own = logic.limit is not None
        self._first = HOLDING if limited and not own else PENDING
        rest = DONE if logic.operator == "not" else LIKELY
        self._rest = self._first if limited or own else rest

    def _start(self, offer: Offer) -> int:
        self.parts[0].start(offer)
        if self.limit is not None:
            offer.instance.since[self.place] = offer.time
        return self._first

    def _take(self, offer: Offer) -> int:
        status = self.parts[0].take(offer)
        offer.taken = False  # what must not occur does not use up an event
        return self._judge(status, offer, self._rest)

    def _lapse(self, offer: Offer) -> int:
        status = self.parts[0].lapse(offer)
        now = offer.instance.status[self.place]
        return self._judge(status, offer, PENDING if now is None else now)

    def _judge(self, status: int | None, offer: Offer, rest: int) -> int:
        if status is not None and status >= LIKELY:
            return FAILED
        if status == FAILED:
            self.parts[0].reset(offer.instance)
            self.parts[0].start(offer)
        return rest

    def _over(self, status: int) -> int:
        return FAILED if status == FAILED else DONE


class Next(Node):
    """`is`: the next `count` events must each be the operand."""

    def __init__(self, place: int, logic: Logic, parts: Sequence[Node]) -> None:
        super().__init__(place, logic, parts)
        self._times = logic.times

    def _start(self, offer: Offer) -> int:
        self.parts[0].start(offer)
        return PENDING

    def _take(self, offer: Offer) -> int:
        instance, part = offer.instance, self.parts[0]
        status = part.take(offer)
        if status == FAILED or (status < LIKELY and not offer.taken):
            return FAILED
        offer.taken = True  # also for `is(not(e))`: it is about this event
        if status < LIKELY:
            return PENDING
        instance.count[self.place] += 1
        if instance.count[self.place] == self._times:
            return DONE
        part.reset(instance)
        part.start(offer)
        return PENDING

    def _lapse(self, offer: Offer) -> int:
        return FAILED if self.parts[0].lapse(offer) == FAILED else PENDING


class Tree:
    """The nodes of a pattern.

    Attributes:
        root: the outermost operator.
        nodes: how many nodes there are.
        events: how many events of interest there are.
        limited: whether any node has a time limit.
        names: how many names expressions bind.
    """

    def __init__(self, logic: Logic, matchers: dict[str, Matcher], names: int = 0) -> None:
        self._matchers = matchers
        self._order = list(matchers)
        self.nodes = 0
        self.events = len(matchers)
        self.names = names
        self.limited = False
        self.root = self._build(logic, limited=False)

    def _build(self, logic: Logic, *, limited: bool) -> Node:
        place = self.nodes
        self.nodes += 1
        limited |= logic.limit is not None
        self.limited |= limited
        if logic.operator == "event":
            event = self._order.index(logic.name)
            return EventNode(place, logic, event, self._matchers[logic.name])
        # What must not occur is another attempt each time: limits around do not end it.
        inside = logic.operator in {"not", "notoccur"}
        parts = [self._build(part, limited=limited and not inside) for part in logic.parts]
        match logic.operator:
            case "fby":
                return FollowedBy(place, logic, parts)
            case "and":
                return AllNode(place, logic, parts, min)
            case "or":
                return AllNode(place, logic, parts, max)
            case "is":
                return Next(place, logic, parts)
            case _:
                return Absent(place, logic, parts, limited)
