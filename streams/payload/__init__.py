"""Payloads: content-addressed bytes outside events, their stores and caches."""
