"""Tokens: nobody's Secret is read, and one deployment's token is no other's."""

from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from espha_operator.reconcile import tokens
from espha_operator.reconcile.tokens import Tokens
from espha_operator.resources import meta
from unit.operator import samples

Object = dict[str, Any]
DEMO = samples.deployment()


class _Secrets:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Object] = {}
        self.read_ones: set[tuple[str, str]] = set()

    def read(self, kind: str, namespace: str, name: str) -> Object | None:
        self.read_ones.add((namespace, name))
        return self.kept.get((namespace, name))

    def create(self, wanted: Object) -> None:
        key = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
        if key in self.kept:
            raise ApiException(status=409)
        texts = wanted["stringData"].items()
        data = {name: b64encode(text.encode()).decode() for name, text in texts}
        self.kept[key] = {**wanted, "data": data}


@pytest.fixture
def kept() -> _Secrets:
    return _Secrets()


def test_only_the_operators_own_secret_is_read(kept: _Secrets) -> None:
    made = Tokens(kept, "system")
    made.ensure(DEMO)
    made.ensure(DEMO)
    assert kept.read_ones == {("system", tokens.NAME)}
    secret = kept.kept["shop", meta.token_name(DEMO)]
    assert b64decode(secret["data"]["token"]).decode() == made.of(DEMO)
    assert secret["metadata"]["ownerReferences"][0]["uid"] == DEMO.uid


def test_another_operator_and_the_next_one_derive_the_same(kept: _Secrets) -> None:
    assert Tokens(kept, "system").of(DEMO) == Tokens(kept, "system").of(DEMO)


def test_a_deployment_made_again_has_another_token_in_another_secret(kept: _Secrets) -> None:
    again, made = replace(DEMO, uid="uid-2"), Tokens(kept, "system")
    assert made.of(DEMO) != made.of(again)
    assert meta.token_name(DEMO) != meta.token_name(again)


def test_a_secret_that_is_called_like_the_deployment_is_never_taken_for_its_token() -> None:
    assert meta.token_name(DEMO) not in ("demo-token", "demo-espha-token")


def test_a_key_that_is_empty_is_no_key(kept: _Secrets) -> None:
    kept.kept["system", tokens.NAME] = {"data": {}}
    with pytest.raises(ValueError, match="delete it"):
        Tokens(kept, "system").of(DEMO)
