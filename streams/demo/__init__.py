"""The two-minute tour: what the log and its mirror do, on the real parts."""
