"""Parsed `sink:` block: storage, driver, mode, statement and options."""

from __future__ import annotations

from dataclasses import dataclass

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.sinks.storages import STORAGES, Storage, default_driver
from streams.playbook.yaml_document import Authored, as_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBlock:
    """A block with the defaults of its storage."""

    written: Authored
    """The block as its author wrote it."""
    storage: str
    """The event log if the block names no known storage."""
    driver: str
    mode: str
    statement: str | None
    """None: the block is declarative."""
    spec: Authored
    """Options of the storage."""

    @classmethod
    def read(cls, written: Authored) -> SinkBlock:
        """Parse a block."""
        named = written.get("storage") or written.get("tool")
        storage = named if isinstance(named, str) and named in STORAGES else "event_log"
        spec, statement = as_mapping(written.get("spec")), written.get("statement")
        driver = spec.get("driver") or default_driver(storage, str(spec.get("dialect") or ""))
        return cls(
            written=written,
            storage=storage,
            driver=str(driver),
            mode=str(written.get("mode") or next(iter(STORAGES[storage].modes), "")),
            statement=statement if isinstance(statement, str) else None,
            spec=spec,
        )

    @property
    def known(self) -> Storage:
        """The description of its storage."""
        return STORAGES[self.storage]

    @property
    def full_name(self) -> str:
        """The storage with its driver, such as `kv.redis`, or without if it has none."""
        return f"{self.storage}.{self.driver}" if self.driver else self.storage

    @property
    def is_builtin(self) -> bool:
        """Whether the driver is built in; options of others are unknown."""
        return not self.driver or self.driver in self.known.drivers

    @property
    def has_credential(self) -> bool:
        """Whether the block names a credential."""
        return not self.written.keys().isdisjoint(AUTH_KEYS)

    @property
    def has_table(self) -> bool:
        """Whether the block names a table."""
        return "table" in self.written or "table" in self.spec
