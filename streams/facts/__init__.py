"""Facts for analysts: last states, billing and audit, derived from the log."""
