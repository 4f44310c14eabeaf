"""A certificate authority of one sandbox: it signs for whatever host the code speaks with, so that TLS can be read.

The code is given the authority's certificate and believes it; its key stays in the memory of this process.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections import OrderedDict
from collections.abc import Callable

from hatchway.core.errors import MissingExtra

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise MissingExtra("the certificates for allowed domains", "network") from None

KEPT_CERTIFICATES = 256
LIFE = datetime.timedelta(days=365)
_SLACK = datetime.timedelta(hours=1)
"""The clock of the code may differ."""
OnName = Callable[[str | None], None]
"""Told the server name (SNI) that a client asked for."""


class CertificateAuthority:
    """Signs certificates for hosts."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Hatchway sandbox")])
        self._leaves: OrderedDict[str, bytes] = OrderedDict()
        self.certificate = self._own_certificate()
        """What the guest may know, as PEM text."""

    def context(self, host: str, on_name: OnName) -> ssl.SSLContext:
        """TLS settings for a server that is `host`, for one connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.sni_callback = lambda connection, name, context: on_name(name)
        chain = os.memfd_create("certificate", os.MFD_CLOEXEC)  # the ssl module reads keys from files only
        try:
            os.write(chain, self._leaf(host))
            context.load_cert_chain(f"/proc/self/fd/{chain}")
        finally:
            os.close(chain)
        return context

    def _leaf(self, host: str) -> bytes:
        """The key and a certificate for a host, as PEM."""
        if host not in self._leaves:
            self._leaves[host] = _pem(self._leaf_key) + self._signed(host).public_bytes(serialization.Encoding.PEM)
            if len(self._leaves) > KEPT_CERTIFICATES:
                self._leaves.popitem(last=False)
        self._leaves.move_to_end(host)
        return self._leaves[host]

    def _own_certificate(self) -> str:
        made = (
            _begun(self._name, self._name, self._key.public_key(), self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def _signed(self, host: str) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        return (
            _begun(subject, self._name, self._leaf_key.public_key(), self._key.public_key())
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, issuer_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
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


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
