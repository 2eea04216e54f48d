"""An authority that signs certificates for servers and clients, made anew for each test."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
_END = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path
    serial: int

    def put_over(self, other: "Pair") -> None:
        """Replace the other's files on disk, as a tool that renews certificates does: first one file, then the
        other."""
        other.certificate.write_bytes(self.certificate.read_bytes())
        other.key.write_bytes(self.key.read_bytes())


class Authority:
    """Signs; its own certificate is what the other side trusts."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = _builder(self._name, self._name, self._key)
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = builder.add_extension(constraint, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(_pem(self._certificate))

    def server(self, name: str = "server") -> Pair:
        """For 127.0.0.1 and localhost."""
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        return self._sign(name, x509.SubjectAlternativeName(names))

    def client(self, name: str, *, ended: bool = False) -> Pair:
        """For a client of that name; `ended`: it has expired."""
        return self._sign(name, x509.SubjectAlternativeName([x509.DNSName(name)]), ended=ended)

    def _sign(self, name: str, names: x509.SubjectAlternativeName, ended: bool = False) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), self._name, key, _EPOCH + timedelta(days=1) if ended else _END)
        made = builder.add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        pair = Pair(
            certificate=self._folder / f"{name}.pem", key=self._folder / f"{name}.key", serial=made.serial_number
        )
        pair.certificate.write_bytes(_pem(made))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime = _END
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    numbered = builder.serial_number(x509.random_serial_number())
    return numbered.not_valid_before(_EPOCH).not_valid_after(end)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
