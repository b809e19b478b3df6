"""Certificates for a broker and its peers, which the command openssl makes: an authority, and what it vouches for. Each
file is in the folder that is given, and with it gone."""

import pathlib
import ssl
import subprocess


class Certificates:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.cafile = self.path("authority.pem")
        self.make("authority", "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
        issuer = ["-CA", self.cafile, "-CAkey", self.path("authority.key")]
        self.make("broker", "subjectAltName=DNS:localhost,IP:127.0.0.1", "extendedKeyUsage=serverAuth", issuer=issuer)
        self.make("peer", "subjectAltName=email:peer@example.com", "extendedKeyUsage=clientAuth", issuer=issuer)

    def path(self, name):
        return str(self.folder / name)

    def make(self, name, *extensions, issuer=()):
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                 "-subj", f"/CN={name}", "-out", self.path(f"{name}.pem"), "-keyout", self.path(f"{name}.key"), *issuer,
                 "-config", "/dev/null"]
        for extension in extensions:
            words += ["-addext", extension]
        subprocess.run(words, check=True, capture_output=True)
        pathlib.Path(self.path(f"{name}.key")).chmod(0o600)

    def broker_options(self):
        """By which the command speaks TLS and asks its clients for certificates, without requiring one."""
        return ["--tls-cert", self.path("broker.pem"), "--tls-key", self.path("broker.key"),
                "--tls-client-auth", "optional", "--tls-client-ca", self.cafile]

    def peer_files(self):
        """What a peer shows."""
        return [self.path("peer.pem"), self.path("peer.key")]


def context(cafile, *own):
    """That of a peer: its authority, and the files of the certificate that it shows, if any."""
    made = ssl.create_default_context(cafile=cafile)
    if own:
        made.load_cert_chain(*own)
    return made
