"""Business projections: tables by key, aggregated from the rows of executions."""
