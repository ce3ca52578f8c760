"""How large the values of an envelope may be."""

MAX_ID = 2**63 - 1
MAX_SAFE_INT = 2**53 - 1  # beyond it, JSON's numbers are not exact everywhere
MAX_NAME_CHARS = 200
MAX_KEY_CHARS = 512
MAX_SEGMENT_CHARS = 255
"""Of a tenant or organization as a locator writes it: payloads lie in folders of these names."""
