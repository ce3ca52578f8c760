"""The whole runtime on one seeded scheduler, with ports that fail in every way they may."""
