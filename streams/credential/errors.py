"""Errors of credentials.

Refused
├── BadCredential     its name, type or fields are invalid
├── NoKey             no encryption key is configured
├── NotOpened         it cannot be decrypted: moved, changed, or of another key
├── NoCredential      it does not exist
├── NotNamed          the claimed step does not name it
└── NotHeld           the worker does not hold the claimed task
Unavailable
└── ProviderUnavailable   an external secret provider does not respond
"""

from __future__ import annotations

from streams.errors import Refused, Unavailable


class BadCredential(Refused):
    """The name, type or a field is invalid; the message never contains a value."""


class NoKey(Refused):
    """No encryption key is configured."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"credentials cannot be encrypted: {why}; set credential_store.key_file to a "
            "file with a key (`streams credential new-key` makes one), or "
            "STREAMS__CREDENTIAL_STORE__KEY"
        )


class NotOpened(Refused):
    """The stored credential cannot be decrypted."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"credential {name!r} cannot be decrypted: {why}; set it again")
        self.name = name


class NoCredential(Refused):
    """There is no credential of that name in the scope."""

    def __init__(self, name: str, where: str = "the store") -> None:
        super().__init__(
            f"credential {name!r}: there is none in {where}; "
            "add it with `streams credential set`, or correct the name"
        )
        self.name = name


class NotNamed(Refused):
    """The claimed step does not name the credential."""

    def __init__(self, step: str, name: str) -> None:
        super().__init__(
            f"step {step!r} does not name the credential {name!r}; write it as the `auth` of a "
            "task of this step, or declare it under `credentials` if a template produces the name"
        )


class NotHeld(Refused):
    """The worker does not hold the frame or command."""


class ProviderUnavailable(Unavailable):
    """An external secret provider does not respond; retrying is safe."""
