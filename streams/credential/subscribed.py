"""Resolution of the credential that a subscription names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streams.credential.errors import BadCredential, NoCredential
from streams.credential.keys import Keys
from streams.credential.port import Provider
from streams.credential.seal import SealedFields, unseal
from streams.payload.port import Scope


class SubscribedCredentials(Protocol):
    """Stored credentials, readable for the subscription that names them."""

    async def of_subscription(self, catalog_id: int, name: str) -> SealedFields | None:
        """Return the credential that a subscription's newest version names; None: none.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...


class SubscriptionSecrets:
    """Decrypts stored credentials and queries providers, on behalf of subscriptions."""

    def __init__(
        self, store: SubscribedCredentials, keys: Keys, providers: Mapping[str, Provider]
    ) -> None:
        self._store, self._keys, self._providers = store, keys, providers

    async def fields(self, scope: Scope, catalog_id: int, name: str) -> Mapping[str, str]:
        """Return the fields of the credential `name` of a subscription.

        Raises:
            NoCredential: there is none, or the subscription does not name it.
            BadCredential: the name is not allowed.
            NoKey, NotOpened: it cannot be decrypted.
            Unavailable: the store or a provider does not respond.
        """
        prefix, colon, rest = name.partition(":")
        if not colon:
            sealed = await self._store.of_subscription(catalog_id, name)
            if sealed is None:
                raise NoCredential(name)
            return unseal(self._keys(), scope, name, sealed)
        provider = self._providers.get(prefix)
        if provider is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise BadCredential(
                f"credential {name!r}: there is no provider {prefix!r} (configured: {known}); "
                "see credential_store.providers in the settings"
            )
        found = await provider.find(scope, rest)
        if found is None:
            raise NoCredential(name, f"the provider {prefix}")
        return found
