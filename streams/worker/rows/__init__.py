"""Rows of a frame: their sources, and the window that runs them."""
