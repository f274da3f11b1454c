"""What the watches have brought: the operator's own copy of the objects that it looks at."""

import threading
from collections.abc import Iterable

from espha_operator.resources.meta import Object

Key = tuple[str, str]


class Store:
    """Objects by kind, namespace and name. Any thread may read; what is read must not be changed.

    An object that comes is kept when it is newer than the one that is known.
    """

    def __init__(self) -> None:
        """Start without objects."""
        self._lock = threading.Lock()
        self._kinds: dict[str, dict[Key, Object]] = {}

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None when none is known."""
        with self._lock:
            return self._kinds.get(kind, {}).get((namespace, name))

    def list(self, kind: str, namespace: str, labels: dict[str, str]) -> list[Object]:
        """Return the objects of a namespace that have all these labels, by name."""
        with self._lock:
            known = list(self._kinds.get(kind, {}).items())
        found = [(at[1], one) for at, one in known if at[0] == namespace and _has(one, labels)]
        return [one for _, one in sorted(found, key=lambda pair: pair[0])]

    def put(self, kind: str, one: Object) -> None:
        """Keep an object."""
        with self._lock:
            known = self._kinds.setdefault(kind, {})
            if _version(one) >= _version(known.get(_key(one))):
                known[_key(one)] = slim(one)

    def remove(self, kind: str, one: Object) -> None:
        """Forget an object; a later one of its name stays."""
        with self._lock:
            known = self._kinds.get(kind, {})
            there = known.get(_key(one))
            if there is not None and _uid(there) == _uid(one):
                del known[_key(one)]

    def replace(self, kind: str, namespace: str, all_of_them: Iterable[Object]) -> None:
        """Keep these objects of a namespace, and forget its others; empty: of all namespaces."""
        fresh = {_key(one): slim(one) for one in all_of_them}
        with self._lock:
            known = self._kinds.get(kind, {})
            others = {at: one for at, one in known.items() if namespace and at[0] != namespace}
            self._kinds[kind] = {**others, **fresh}


def slim(one: Object) -> Object:
    """Return an object without `managedFields`, which is most of it and which nobody reads."""
    meta = {key: value for key, value in one["metadata"].items() if key != "managedFields"}
    return {**one, "metadata": meta}


def version(one: Object) -> int:
    """Return an object's resource version; 0 when it has none that can be compared."""
    said = str(one["metadata"].get("resourceVersion", ""))
    return int(said) if said.isdecimal() else 0


def parse_selector(selector: str) -> dict[str, str]:
    """Return the labels that a selector `key=value,…` asks for."""
    return dict(part.split("=", 1) for part in selector.split(",") if part)


def _version(one: Object | None) -> int:
    return -1 if one is None else version(one)


def _key(one: Object) -> Key:
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _uid(one: Object) -> str:
    return str(one["metadata"].get("uid", ""))


def _has(one: Object, labels: dict[str, str]) -> bool:
    own = one["metadata"].get("labels") or {}
    return all(own.get(key) == value for key, value in labels.items())
