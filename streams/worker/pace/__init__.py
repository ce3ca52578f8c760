"""Pacing of calls: rates over all workers, hosts that ask to wait, rows that only wait."""
