"""The authority of one sandbox: what it signs is believed by whoever has its certificate, and for that host only."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hatchway.transports.egress.authority import KEPT_CERTIFICATES, CertificateAuthority


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with _wants_more():
                end.do_handshake()
    assert ends[0].version() in ("TLSv1.2", "TLSv1.3")


@contextmanager
def _wants_more() -> Iterator[None]:
    try:
        yield
    except ssl.SSLWantReadError:
        pass


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "::1", "xn--bcher-kva.de", "a" * 60 + ".example.org"])
def test_a_certificate_is_good_for_its_host(host: str) -> None:
    authority = CertificateAuthority()
    names: list[str | None] = []
    client = ssl.create_default_context(cadata=authority.certificate)
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT  # what Python 3.13 asks for by default
    shake_hands(authority.context(host, names.append), client, host)
    assert names == [None if host in ("127.0.0.1", "::1") else host]


def test_it_is_not_good_for_another_host_nor_by_another_authority() -> None:
    authority, other = CertificateAuthority(), CertificateAuthority()
    client = ssl.create_default_context(cadata=authority.certificate)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(authority.context("example.org", lambda name: None), client, "example.com")
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        shake_hands(other.context("example.org", lambda name: None), client, "example.org")


def test_the_certificate_holds_no_key_and_only_so_many_are_kept() -> None:
    authority = CertificateAuthority()
    assert authority.certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE" not in authority.certificate
    for number in range(KEPT_CERTIFICATES + 10):
        authority._leaf(f"{number}.test")
    assert len(authority._leaves) == KEPT_CERTIFICATES
