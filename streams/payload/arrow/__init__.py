"""Rows of JSON as Arrow streams, and back."""
