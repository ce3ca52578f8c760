"""Resolution of a credential for a worker that holds a task whose step names it."""

from __future__ import annotations

from collections.abc import Mapping

from streams.catalog.port import Playbooks
from streams.credential.errors import BadCredential, NoCredential, NotNamed
from streams.credential.keys import Keys
from streams.credential.port import Claim, CredentialStore, Held, Provider, Secret
from streams.credential.seal import unseal
from streams.playbook.credentials import may_use_credential


class Resolver:
    """Decrypts stored credentials and queries providers, on behalf of workers."""

    def __init__(
        self,
        store: CredentialStore,
        keys: Keys,
        playbooks: Playbooks,
        providers: Mapping[str, Provider],
    ) -> None:
        self._store, self._keys, self._playbooks = store, keys, playbooks
        self._providers = providers

    async def resolve(self, claim: Claim, name: str) -> Secret:
        """Return the credential `name`; aliases of the playbook are already resolved.

        Raises:
            NotHeld: the worker does not hold this attempt now.
            NotNamed: the step of the attempt does not name this credential.
            NoCredential: there is none.
            BadCredential: the name is not allowed.
            NoKey, NotOpened: it cannot be decrypted.
            Unavailable: the store, the catalog or a provider does not respond.
        """
        held = await self._store.held(claim, name)
        playbook = await self._playbooks.get(held.catalog_id, held.version)
        if not may_use_credential(playbook, held.step, name):
            raise NotNamed(held.step, name)
        prefix, colon, rest = name.partition(":")
        if colon:
            return await self._provided(prefix, rest, name, held)
        if held.sealed is None:
            raise NoCredential(name)
        fields = unseal(self._keys(), held.scope, name, held.sealed)
        return Secret(kind=held.kind or "", fields=fields, seconds_left=held.seconds_left)

    async def _provided(self, prefix: str, rest: str, name: str, held: Held) -> Secret:
        provider = self._providers.get(prefix)
        if provider is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise BadCredential(
                f"credential {name!r}: there is no provider {prefix!r} (configured: {known}); "
                "see credential_store.providers in the settings"
            )
        fields = await provider.find(held.scope, rest)
        if fields is None:
            raise NoCredential(name, f"the provider {prefix}")
        return Secret(kind=prefix, fields=fields, seconds_left=held.seconds_left)
