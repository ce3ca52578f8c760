"""The roles as modules for Faust's own command: `faust -A streams.apps.planner worker`.

`streams run ROLE` is the usual way; it runs the same applications.
"""
