"""What is too big for an event: the store port, its adapters, rows as Arrow."""
