"""Encryption keys of credentials: the first encrypts, all of them decrypt."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes

from streams.credential.errors import NoKey

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Key:
    """An AES-256 key; its id is a digest of it."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The id stored with everything it encrypted."""
        return sha256(b"noetl.credential.key\0" + self.secret).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys in the order of their file."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        """The key that encrypts."""
        return self.keys[0]

    def get(self, key_id: str) -> Key | None:
        """Return the key with that id, or None."""
        return next((key for key in self.keys if key.id == key_id), None)


Keys = Callable[[], KeyRing]
"""Reads the keys on every call, so that a rotation needs no restart. Raises NoKey."""


def new_key() -> str:
    """Return a new key as a line of a key file."""
    return urlsafe_b64encode(token_bytes(KEY_BYTES)).decode()


def read_keys(text: str, where: str) -> KeyRing:
    """Parse keys, one per line; empty lines and comments (#) are skipped.

    Raises:
        NoKey: there is none, or a line is invalid. The message contains none of the text.
    """
    keys = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        keys.append(_key(word, f"{where}, line {number}"))
    if not keys:
        raise NoKey(f"{where} contains no key")
    return KeyRing(tuple(keys))


def _key(word: str, where: str) -> Key:
    try:
        secret = b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        raise NoKey(f"{where} is not base64") from None
    if len(secret) != KEY_BYTES:
        raise NoKey(f"{where} has {len(secret)} bytes, not {KEY_BYTES}")
    return Key(secret)


def keys_from(value: str | None, file: str | None) -> Keys:
    """Return a reader of the keys: from a value, or else from a file."""

    def read() -> KeyRing:
        if value:
            return read_keys(value, "credential_store.key")
        if not file:
            raise NoKey("no key is configured")
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not a text file"
            raise NoKey(f"the key file {file} cannot be read ({why})") from None
        return read_keys(text, file)

    return read
