"""Size limits of envelope values."""

MAX_ID = 2**63 - 1
MAX_SAFE_INT = 2**53 - 1  # larger JSON numbers are not exact everywhere
MAX_NAME_CHARS = 200
MAX_KEY_CHARS = 512
MAX_SEGMENT_CHARS = 255
"""Of a percent-encoded tenant or organization: payload folders have these names."""
