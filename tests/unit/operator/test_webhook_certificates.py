"""The webhook's certificates: good for their hosts, renewed in time, replaced when broken."""

import dataclasses
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from espha_operator.webhook.certificates import LIFETIME, Certificate, make, trouble

HOSTS = ("hook.espha-system.svc", "hook.espha-system")
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_a_certificate_is_good_for_two_thirds_of_its_life() -> None:
    made = make(HOSTS, NOW)
    assert trouble(made, HOSTS, NOW) == ""
    assert trouble(made, HOSTS, NOW + LIFETIME * 2 / 3 - timedelta(hours=1)) == ""
    late = trouble(made, HOSTS, NOW + LIFETIME * 2 / 3 + timedelta(hours=1))
    assert late == "It is valid until 2027-11-23 only."


def broken() -> dict[str, tuple[Certificate, str]]:
    made, other = make(HOSTS, NOW), make(HOSTS, NOW)
    replace = dataclasses.replace
    return {
        "nothing there": (Certificate(b"", b"", b""), "cannot be read"),
        "no certificate": (replace(made, chain=b"x"), "cannot be read"),
        "no key": (replace(made, key=b"x"), "cannot be read"),
        "another's key": (replace(made, key=other.key), "does not belong"),
        "another authority": (replace(made, bundle=other.bundle), "cannot be read"),
        "another host": (make(("x.y.svc",), NOW), "not for hook.espha-system.svc"),
        "from the future": (make(HOSTS, NOW + timedelta(days=2)), "valid until"),
    }


@pytest.mark.parametrize("case", broken())
def test_what_cannot_be_used_is_said(case: str) -> None:
    certificate, words = broken()[case]
    assert words in trouble(certificate, HOSTS, NOW)


def test_the_authority_before_stays_trusted_as_long_as_it_is_valid() -> None:
    first = make(HOSTS, NOW)
    second = make(HOSTS, NOW + LIFETIME / 2, first.bundle)
    third = make(HOSTS, NOW + LIFETIME, second.bundle)
    assert second.bundle.endswith(first.bundle)
    assert len(x509.load_pem_x509_certificates(third.bundle)) == 2
    much_later = make(HOSTS, NOW + LIFETIME * 3, third.bundle)
    assert len(x509.load_pem_x509_certificates(much_later.bundle)) == 1
    assert trouble(second, HOSTS, NOW + LIFETIME / 2) == ""


def test_a_strict_client_believes_it_and_its_key_is_nowhere_else() -> None:
    made = make(HOSTS, NOW)
    context = ssl.create_default_context(cadata=made.bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    assert len(context.get_ca_certs()) == 1
    assert made.key.count(b"PRIVATE KEY") == 2
    assert b"PRIVATE" not in made.bundle + made.chain
