"""The two spellings of the language. They compile into one model; a few meanings differ."""

from __future__ import annotations

from enum import StrEnum


class Spelling(StrEnum):
    """How a document is read, as a whole.

    SPEC: labelled tasks with `eval` rules; `{{ step }}` is an envelope with `status`, `data` and
    `meta`; an undefined name is an error.
    NOETL: named tasks with `spec.policy.rules`; `{{ step }}` is the plain value of its tool;
    workload keys and variables are names of their own; an undefined name is empty.
    """

    SPEC = "spec"
    NOETL = "noetl"
