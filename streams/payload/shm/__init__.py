"""Tier 1.5: Arrow streams in the node's shared memory."""
