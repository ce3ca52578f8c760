"""Stores of projections: one port, and adapters for Postgres, DuckDB, RocksDB and memory."""
