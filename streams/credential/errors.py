"""Why a credential cannot be kept, found or handed out.

Refused
├── BadCredential     its name, type or fields cannot be used
├── NoKey             there is no key to seal or open with
├── NotOpened         the key does not open what is stored: moved, changed, or another key's
├── NoCredential      there is none of that name
├── NotNamed          the claimed step does not name it
└── NotHeld           the worker does not hold what it asks for, or not any more
Unavailable
└── ProviderUnavailable   an outside provider of secrets does not answer
"""

from __future__ import annotations

from streams.errors import Refused, Unavailable


class BadCredential(Refused):
    """A name, type or field that cannot be used; the message never has a value in it."""


class NoKey(Refused):
    """There is no key to seal or open with."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"credentials cannot be sealed or opened: {why}; set credential_store.key_file to a "
            "file with a key (`streams credential new-key` makes one), or "
            "STREAMS__CREDENTIAL_STORE__KEY"
        )


class NotOpened(Refused):
    """The key does not open what is stored."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"credential {name!r} cannot be opened: {why}; set it again")
        self.name = name


class NoCredential(Refused):
    """There is no credential of that name in the scope."""

    def __init__(self, name: str, where: str = "the store") -> None:
        super().__init__(
            f"credential {name!r}: there is none in {where}; "
            "add it with `streams credential set`, or put the name right"
        )
        self.name = name


class NotNamed(Refused):
    """The claimed step does not name the credential."""

    def __init__(self, step: str, name: str) -> None:
        super().__init__(
            f"step {step!r} does not name the credential {name!r}; write it as the `auth` of a "
            "task of this step, or declare it under `credentials` where a template makes the name"
        )


class NotHeld(Refused):
    """The worker does not hold the frame or command, or not any more."""


class ProviderUnavailable(Unavailable):
    """An outside provider of secrets does not answer; asking again is safe."""
