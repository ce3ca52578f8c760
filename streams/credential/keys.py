"""The keys that seal credentials: the first seals, the others still open what they sealed."""

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
    """One key of AES-256; its id is made from it, and does not tell it."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """What is stored beside everything it sealed."""
        return sha256(b"noetl.credential.key\0" + self.secret).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys in the order of their file."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        """The key that seals."""
        return self.keys[0]

    def get(self, key_id: str) -> Key | None:
        """Return the key of that id, if it is here."""
        return next((key for key in self.keys if key.id == key_id), None)


Keys = Callable[[], KeyRing]
"""Reads the keys anew each time, so that a rotation needs no restart. Raises NoKey."""


def new_key() -> str:
    """Return a new key as a line of a key file."""
    return urlsafe_b64encode(token_bytes(KEY_BYTES)).decode()


def read_keys(text: str, where: str) -> KeyRing:
    """Read keys, one a line; empty lines and those that begin with # do not count.

    Raises:
        NoKey: there is none, or a line is no key. No message has any of the text in it.
    """
    keys = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        keys.append(_key(word, f"{where}, line {number}"))
    if not keys:
        raise NoKey(f"{where} has no key in it")
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
    """Return how to read the keys: given as a value (which wins), or in a file."""

    def read() -> KeyRing:
        if value:
            return read_keys(value, "credential_store.key")
        if not file:
            raise NoKey("no key is configured")
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise NoKey(f"the key file {file} cannot be read ({why})") from None
        return read_keys(text, file)

    return read
