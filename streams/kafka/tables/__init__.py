"""State of agents in tables: written to a changelog and to disk, per partition of their topic."""
