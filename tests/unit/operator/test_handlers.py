"""What the operator does when it starts, and what it tells of itself."""

import asyncio
from typing import Any

import kopf
import pytest

from espha_operator import handlers
from espha_operator.reconcile.cluster import MissingKindError


class _NoKind:
    """An API server without the CRD."""

    def require_kind(self, namespaces: tuple[str, ...]) -> None:
        raise MissingKindError("install the CustomResourceDefinition")


class _Fleet:
    def __init__(self, **ages: float) -> None:
        self._ages = ages

    def ages(self) -> dict[str, float]:
        return self._ages

    def stuck(self) -> dict[str, float]:
        return {name: age for name, age in self._ages.items() if age > 90}


class _Leases:
    def waiting(self) -> dict[str, str]:
        return {"plant": "other/two"}


def told(**ages: float) -> Any:
    memo = kopf.Memo(fleet=_Fleet(**ages), leases=_Leases())
    return asyncio.run(handlers.deployments(memo=memo))


def test_without_its_kind_the_operator_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would wait for ever else: kopf looks for the kind once."""
    monkeypatch.setattr(handlers, "Cluster", _NoKind)
    with pytest.raises(kopf.PermanentError, match="install the CustomResourceDefinition"):
        asyncio.run(handlers.startup(settings=kopf.OperatorSettings(), memo=kopf.Memo()))


def test_one_stuck_deployment_is_told_and_does_not_end_the_operator() -> None:
    assert told(good=0.5, bad=500.0) == {
        "kept": 2,
        "slowest_step_seconds": 500.0,
        "stuck": ["bad"],
        "waiting": {"plant": "other/two"},
    }


def test_when_none_gets_on_it_is_the_operator() -> None:
    with pytest.raises(kopf.PermanentError, match="no step of any deployment"):
        told(one=91.0, two=500.0)


def test_without_deployments_all_is_well() -> None:
    assert told()["kept"] == 0


def test_no_handler_needs_a_finalizer() -> None:
    """A namespace would hang on it when the operator has gone first."""
    registry = kopf.get_default_registry()
    kinds = (registry._changing, registry._spawning)
    assert [one for kind in kinds for one in kind.get_all_handlers()] == []
