"""Tier 1.5: Arrow streams in the memory that all processes of a node share."""
