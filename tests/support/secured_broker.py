"""The embedded broker with three listeners, all on loopback: plain text, TLS, and TLS with users and rights.

Who comes without a user name may do everything; a user may do what an ACL allows.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from deploy.java.broker import HOST, Broker, _bind

MECHANISM = "SCRAM-SHA-512"
PASSWORD = "Pa55-w0rd;of{tests}=x"  # with what JAAS and properties files might trip over

Right = tuple[str, str, str]  # operation, kind of resource, name; a name that ends with * is a prefix


class SecuredBroker(Broker):
    """A broker with TLS, a SCRAM user for each of `users`, and ACLs."""

    def __init__(self, folder: Path, users: Iterable[str]) -> None:
        super().__init__(data=folder / "broker")
        self.users = tuple(users)
        self.authority = folder / "ca.pem"
        self._keys = folder / "broker.pem"
        self._ports: dict[str, int] = {}
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(self.authority)
        self.certify()

    def certify(self, until: datetime | None = None) -> None:
        """Give the broker a new certificate, which counts from its next start on. until: when it expires."""
        self._keys.write_bytes(_as_pkcs8(self._authority.issue_cert(HOST, "localhost", not_after=until)))

    def _protect(self, settings: dict[str, str], ports: contextlib.ExitStack) -> dict[str, str]:
        self._ports = {name: _bind(self._ports.get(name, 0), ports) for name in ("SSL", "SASL_SSL")}
        more = "".join(f",{name}://{HOST}:{port}" for name, port in self._ports.items())
        protocols = settings["listener.security.protocol.map"]
        return settings | {
            "listeners": settings["listeners"] + more,
            "advertised.listeners": more[1:] + "," + settings["advertised.listeners"],
            "listener.security.protocol.map": protocols + ",SSL:SSL,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keys),
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def _first_users(self) -> list[str]:
        return [f"--add-scram={MECHANISM}=[name={user},password={PASSWORD}]" for user in self.users]

    def settings(self, protocol: str, user: str = "") -> dict[str, str]:
        """Return the client settings of PLAINTEXT, SSL or SASL_SSL, as somebody writes them after --kafka."""
        if protocol == "PLAINTEXT":
            return {}
        settings = {
            "security.protocol": protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }
        if protocol == "SASL_SSL":
            settings |= {"sasl.mechanism": MECHANISM, "sasl.username": user, "sasl.password": PASSWORD}
        return settings

    def servers(self, protocol: str) -> str:
        """Return the address of PLAINTEXT, SSL or SASL_SSL."""
        return self.bootstrap_servers if protocol == "PLAINTEXT" else f"{HOST}:{self._ports[protocol]}"

    def grant(self, user: str, rights: Sequence[Right]) -> None:
        """Give a user these rights and no others."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            f"User:{user}",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for future in admin.delete_acls([everything]).values():
            future.result()
        for future in admin.create_acls([_binding(user, right) for right in rights]).values() if rights else ():
            future.result()


def _as_pkcs8(certificate: trustme.LeafCert) -> bytes:
    """Return key and certificates in one PEM text, the key as Java reads it."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text + b"".join(blob.bytes() for blob in certificate.cert_chain_pems)


def _binding(user: str, right: Right) -> AclBinding:
    operation, kind, name = right
    pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType[kind.upper()],
        name.removesuffix("*"),
        pattern,
        f"User:{user}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def as_options(settings: Mapping[str, str]) -> list[str]:
    """Return client settings as options of the command line."""
    return [word for key, value in settings.items() for word in ("--kafka", f"{key}={value}")]


def new_user() -> str:
    """Return a name that no other test has."""
    return f"user-{uuid.uuid4().hex[:8]}"
