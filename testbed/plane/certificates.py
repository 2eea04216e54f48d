"""Certificates: one authority per plane signs every identity that the API server accepts.

Each part has an identity of its own, and tests make some with few rights. Kubernetes reads the user from the common
name and the groups from the organisations, so a client certificate is all that an identity takes. Elliptic keys: a
plane needs seven at each start, and RSA keys take far longer to find.
"""

from __future__ import annotations

import datetime
import ipaddress
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(hours=1)  # a certificate that begins now is refused by a clock a second behind
SERVING_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs for one plane. Its own key stays in the plane's folder, so that it can sign later too."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    @classmethod
    def create(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("dovetail-testbed", ())
        builder = _dated(x509.CertificateBuilder()).subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    @classmethod
    def load(cls, folder: Path) -> Authority:
        return cls(KeyPair(certificate=(folder / "ca.crt").read_bytes(), key=(folder / "ca.key").read_bytes()))

    def client(self, user: str, groups: tuple[str, ...]) -> KeyPair:
        """The identity of a user in these groups."""
        return self._sign(_name(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH], ())

    def server(self, *addresses: str) -> KeyPair:
        """What the API server shows to its callers, on loopback and at these addresses."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVING_NAMES]
        names += _at("127.0.0.1", *addresses)
        return self._sign(_name("kube-apiserver", ()), [ExtendedKeyUsageOID.SERVER_AUTH], names)

    def peer(self, name: str, *addresses: str) -> KeyPair:
        """What a server shows that is its like's client too."""
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._sign(_name(name, ()), both, [x509.DNSName(name), *_at(*addresses)])

    def _sign(
        self, subject: x509.Name, usages: list[x509.ObjectIdentifier], names: list[x509.GeneralName] | tuple[()]
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _dated(x509.CertificateBuilder()).subject_name(subject).public_key(key.public_key())
        builder = builder.issuer_name(self._certificate.subject)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def service_account_key() -> bytes:
    """The key with which service account tokens are signed."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def _at(*addresses: str) -> list[x509.GeneralName]:
    return [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]


def _name(common: str, organizations: tuple[str, ...]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _dated(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
    builder = builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + LIFETIME)
    return builder.serial_number(x509.random_serial_number())


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Not PKCS#8: the API server takes the public half of the service accounts' key only out of the older notation.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
