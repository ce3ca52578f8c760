"""Bundles: an execution's events, payloads and schemas in one file, verified without a server."""
