"""Work items and their topics."""
