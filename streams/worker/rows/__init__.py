"""Rows of a frame: where they are read from, and the window that runs them."""
