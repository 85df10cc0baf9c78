"""Certificates for tests: of localhost, as files."""

import http.client
import ssl
from pathlib import Path

import trustme
from support.daemon import PATIENCE_S


class Authority:
    """Gives certificates of localhost, as the files that certbot writes."""

    def __init__(self, folder: Path, *names: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.names = names or ("localhost",)
        self.renew()

    def renew(self) -> None:
        """Write a new key and certificate, of a new authority."""
        self.authority = trustme.CA()
        issued = self.authority.issue_cert(*self.names)
        certificate, *chain = issued.cert_chain_pems
        issued.private_key_pem.write_to_path(self.folder / "privkey.pem")
        certificate.write_to_path(self.folder / "cert.pem")
        rest = b"".join(pem.bytes() for pem in (*chain, self.authority.cert_pem))
        (self.folder / "chain.pem").write_bytes(rest)
        (self.folder / "fullchain.pem").write_bytes(certificate.bytes() + rest)

    def endpoint(self, port: int, interface: str = "127.0.0.1") -> str:
        """Return the text of an endpoint that speaks TLS by these files."""
        files = (("privateKey", "privkey"), ("certKey", "cert"), ("extraCertChain", "chain"))
        named = ":".join(f"{key}={self.folder / name}.pem" for key, name in files)
        return f"ssl:{port}:interface={interface}:{named}"

    def context(self) -> ssl.SSLContext:
        """Return what trusts this authority's newest certificates alone."""
        return ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())

    def connection(
        self, port: int, host: str = "localhost", source: str = ""
    ) -> http.client.HTTPSConnection:
        """Return a connection that trusts this authority's newest certificates alone."""
        context = self.context()
        bound = (source, 0) if source else None
        return http.client.HTTPSConnection(
            host, port, timeout=PATIENCE_S, context=context, source_address=bound
        )
