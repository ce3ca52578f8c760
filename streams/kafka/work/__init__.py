"""Work items and the topics that carry them."""
