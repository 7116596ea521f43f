"""What a control plane on loopback proves itself with: a CA, a serving certificate, a key for service accounts, tokens.

All of it is worth nothing outside this machine: the CA's own key is not kept, and every server listens on loopback.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

# As long as a sandbox may be kept. Nothing renews these.
_VALID = datetime.timedelta(days=3650)
# A clock that was set back must not find a certificate of the future.
_SINCE = datetime.timedelta(days=1)
# Two users: the parts of the plane go on when a person's token is changed.
ADMIN, PARTS = "admin", "control-plane"
_GROUP = "system:masters"


@frozen
class Credentials:
    """The files of a folder, and the tokens in one of them."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def serving_certificate(self) -> Path:
        return self.folder / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.folder / "serving.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        """``token,user,uid,group`` a line, as the API server's --token-auth-file reads it."""
        return self.folder / "tokens.csv"

    @property
    def authority_base64(self) -> str:
        return base64.b64encode(self.authority.read_bytes()).decode()

    def token(self, user: str) -> str:
        lines = (line.split(",") for line in self.tokens.read_text(encoding="utf-8").splitlines())
        return next(fields[0] for fields in lines if fields[1] == user)

    def renew_token(self, user: str) -> None:
        """Give a user another token; the API server knows it once it has started again."""
        tokens = {name: self.token(name) for name in (ADMIN, PARTS)} | {user: secrets.token_hex(16)}
        write_private(self.tokens, _token_lines(tokens))


def credentials(folder: Path) -> Credentials:
    """The credentials of a folder, made when it has none."""
    if not folder.is_dir():
        unfinished = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True, mode=0o700)
        _make(Credentials(unfinished))
        unfinished.rename(folder)
    return Credentials(folder)


def write_private(file: Path, content: bytes) -> None:
    """Replace a file whole; only its owner may read it."""
    unfinished = file.with_name(f".{file.name}.part")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
    unfinished.rename(file)


def _make(made: Credentials) -> None:
    # Here, since importing it costs a tenth of a second, and a plane has its credentials but for the first time.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    authority_key, serving_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key)
    serving = _serving(serving_key, authority, authority_key)
    pem = serialization.Encoding.PEM
    write_private(made.authority, authority.public_bytes(pem))
    write_private(made.serving_certificate, serving.public_bytes(pem))
    write_private(made.serving_key, _written(serving_key))
    write_private(made.service_account_key, _written(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    write_private(made.tokens, _token_lines({user: secrets.token_hex(16) for user in (ADMIN, PARTS)}))


def _token_lines(tokens: dict[str, str]) -> bytes:
    return "".join(f"{token},{user},{user},{_GROUP}\n" for user, token in tokens.items()).encode()


def _written(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    name = _name("nodewright-sandbox-ca")
    may = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _certificate(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(may, critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _serving(
    key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    # Clients of today look at the alternative names only.
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _certificate(_name("kube-apiserver"), authority.subject, key)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SINCE)
        .not_valid_after(now + _VALID)
    )
