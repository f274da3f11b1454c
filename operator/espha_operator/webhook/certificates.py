"""The webhook's certificate, signed by an authority that signs nothing else. Pure.

The authority's key is forgotten as soon as the certificate is signed: nobody can find it, and a
renewed certificate comes with a new authority. For a while both authorities are trusted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
# A clock that goes slow must not find the certificate not valid yet.
SKEW = timedelta(hours=1)
AUTHORITY = "espha webhook authority"


@dataclass(frozen=True)
class Certificate:
    """A server's certificate with what vouches for it, all in PEM.

    Attributes:
        bundle: the authority that signed it, then the one before it.
        chain: the certificate.
        key: its private key.
    """

    bundle: bytes
    chain: bytes
    key: bytes


def make(hosts: Sequence[str], now: datetime, before: bytes = b"") -> Certificate:
    """Make a certificate.

    Args:
        hosts: DNS names of the server.
        now: with a time zone; the certificate is valid from an hour before it.
        before: the bundle in use; its first authority stays trusted until it expires.
    """
    authority_key, key = _key(), _key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY)])
    authority = (
        _builder(name, name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    leaf = (
        _builder(subject, name, key, now)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Certificate(
        bundle=_pem(authority) + _still_good(before, now),
        chain=_pem(leaf),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def trouble(certificate: Certificate, hosts: Sequence[str], now: datetime) -> str:
    """Return why a certificate must be replaced, as a sentence; empty when it need not be."""
    try:
        authority = x509.load_pem_x509_certificates(certificate.bundle)[0]
        leaf = x509.load_pem_x509_certificate(certificate.chain)
        key = serialization.load_pem_private_key(certificate.key, None)
        leaf.verify_directly_issued_by(authority)
        alternative = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, IndexError, x509.ExtensionNotFound, InvalidSignature) as error:
        return f"It cannot be read: {error or type(error).__name__}."
    if key.public_key() != leaf.public_key():
        return "The key does not belong to it."
    if not set(hosts) <= set(alternative.value.get_values_for_type(x509.DNSName)):
        return f"It is not for {', '.join(hosts)}."
    if now < leaf.not_valid_before_utc or now > leaf.not_valid_after_utc - LIFETIME / 3:
        return f"It is valid until {leaf.not_valid_after_utc:%Y-%m-%d} only."
    return ""


def _still_good(bundle: bytes, now: datetime) -> bytes:
    try:
        last = x509.load_pem_x509_certificates(bundle)[0]
    except (ValueError, IndexError):
        return b""
    return _pem(last) if last.not_valid_after_utc > now else b""


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
