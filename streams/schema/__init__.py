"""Avro schemas: model, compatibility, releases, registries and publishing."""
