"""What nothing needs any more: expired results, and payload objects without a reference."""
