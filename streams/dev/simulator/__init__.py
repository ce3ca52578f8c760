"""Deterministic simulation of the runtime on one seeded scheduler, with faulty ports."""
