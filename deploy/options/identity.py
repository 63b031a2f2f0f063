"""Options that say who may see the console, and who may write there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from deploy.options.common import Repeated
from deploy.options.files import SecretFile
from twin.errors import UsageError
from twin.outputs import read_secret

if TYPE_CHECKING:
    from deploy.console.identity import Identity
    from deploy.console.oidc import Client

SIGN_IN = Group("Sign-in", sort_key=5)


@Parameter(name="*", group=SIGN_IN)
@dataclass(frozen=True, kw_only=True)
class SignInOptions:
    """The way in which people say who they are: headers of a proxy, or a provider of OpenID Connect; and roles."""

    trust_proxy: Annotated[
        Repeated,
        Parameter(
            help="Address or network of a proxy whose headers say who asks, or unix with --listen unix:PATH; may be "
            "repeated."
        ),
    ] = ()
    user_header: Annotated[str, Parameter(help="Header of --trust-proxy with the name.")] = "X-Forwarded-User"
    groups_header: Annotated[
        str, Parameter(help="Header of --trust-proxy with the groups, with commas between them.")
    ] = "X-Forwarded-Groups"
    oidc_issuer: Annotated[str | None, Parameter(help="Address of a provider of OpenID Connect.")] = None
    oidc_client_id: Annotated[str | None, Parameter(help="Name that the provider has for the console.")] = None
    oidc_secret_file: Annotated[
        SecretFile | None, Parameter(help="File with the secret of this client in its first line.")
    ] = None
    public_address: Annotated[
        str | None, Parameter(help="Address of the console as browsers use it, for --oidc-issuer.")
    ] = None
    user_claim: Annotated[str, Parameter(help="Claim of the ID token with the name.")] = "preferred_username"
    groups_claim: Annotated[str, Parameter(help="Claim of the ID token with the groups.")] = "groups"
    viewers: Annotated[Repeated, Parameter(help="Group that may look; '*': all; may be repeated.")] = ()
    operators: Annotated[Repeated, Parameter(help="Group that may write notes, too; may be repeated.")] = ()
    approvers: Annotated[Repeated, Parameter(help="Group that may approve, too; may be repeated.")] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names by which browsers call the console."""
        return () if self.public_address is None else (urlsplit(self.public_address).hostname or "",)

    def identity(self) -> Identity | None:
        """Return the way; None: there is none. UsageError: options are wrong, or contradict each other."""
        from deploy.console.identity import Proxy, Roles

        if not self.trust_proxy and self.oidc_issuer is None:
            roles_or_address = [
                name for name in ("viewers", "operators", "approvers", "public_address") if getattr(self, name)
            ]
            if roles_or_address or self.oidc_client_id or self.oidc_secret_file:
                raise UsageError("roles without a sign-in; expected: --trust-proxy ADDRESS or --oidc-issuer URL, too")
            return None
        if self.trust_proxy and self.oidc_issuer is not None:
            raise UsageError("--trust-proxy beside --oidc-issuer; expected: one of them")
        roles = Roles(viewers=self.viewers, operators=self.operators, approvers=self.approvers)
        if self.trust_proxy:
            return Proxy(self.trust_proxy, roles, self.user_header, self.groups_header)
        client = self._client(self.oidc_issuer or "")
        from deploy.console.oidc import Provider

        return Provider(client, roles)

    def _client(self, issuer: str) -> Client:
        try:
            from deploy.console.oidc import Client
        except ImportError as error:
            raise UsageError(f"--oidc-issuer: {error}; expected: pip install 'mqtwin[oidc]'") from None
        if self.oidc_client_id is None or self.oidc_secret_file is None or self.public_address is None:
            needed = "--oidc-client-id ID --oidc-secret-file FILE --public-address URL"
            raise UsageError(f"--oidc-issuer {issuer}; expected: with {needed}")
        return Client(
            issuer=issuer,
            client_id=self.oidc_client_id,
            secret=read_secret("--oidc-secret-file", self.oidc_secret_file),
            address=self.public_address,
            user_claim=self.user_claim,
            groups_claim=self.groups_claim,
        )
