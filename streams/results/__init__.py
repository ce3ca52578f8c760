"""Results of tasks and steps: envelopes, references, spilling and resolving."""
