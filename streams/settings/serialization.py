"""Settings of the serialization of events and payloads."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from streams.settings.fields import Section, Text


class SchemaRegistrySettings(Section):
    """Source of schema ids; `path` defaults to the schemas shipped with the program."""

    backend: Literal["file", "db", "external"] = "file"
    path: Text | None = None
    url: Text | None = None

    @model_validator(mode="after")
    def _external_has_an_address(self) -> Self:
        if self.backend == "external" and self.url is None:
            raise ValueError("backend 'external' needs 'url', the address of the registry")
        return self


class Serialization(Section):
    """The formats of the envelope and of tabular payloads."""

    envelope_format: Literal["canonical-json"] = "canonical-json"
    tabular_payload_format: Literal["arrow-ipc-stream"] = "arrow-ipc-stream"
    schema_registry: SchemaRegistrySettings = SchemaRegistrySettings()
    compression: Literal["zstd", "lz4", "none"] = "zstd"
    timezone: Literal["UTC"] = "UTC"
