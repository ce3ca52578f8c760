"""The compiled playbook: what the planner follows and a worker runs.

Every template in it is compiled once per playbook version; nothing is parsed per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from streams.events.model import Json
from streams.playbook.declarations import Declaration
from streams.playbook.rate import RatePolicy
from streams.playbook.result_policy import ResultPolicy
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template


class Do(StrEnum):
    """Action of an `eval` rule on a task's outcome."""

    CONTINUE = "continue"
    RETRY = "retry"
    JUMP = "jump"
    BREAK = "break"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of `eval`; the first whose `when` holds applies. `when` None is `else`."""

    when: Template | None
    do: Do
    attempts: int = 3
    backoff: str = "fixed"
    """none | fixed | linear | exponential"""
    delay_s: float = 1.0
    to: str | None = None
    set_iter: Template | None = None
    set_vars: Template | None = None
    set_ctx: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """When the task of a `sink:` block runs, and what it persists.

    Its templates see what they persist as `result` and `data`, and the envelope as `this`.
    """

    of: str | None
    """The label of the task it follows; None: it follows the whole step."""
    address: Template
    """The part of the configuration that names the database, independent of the row."""
    on: str = "success"
    """success | error | always"""
    when: Template | None = None
    subject: Template | None = None
    """Renders the envelope to persist if no task of this step produces it."""
    passes: bool = False
    """Whether the step returns what was persisted, not the reference to it."""
    is_exact: bool = True
    """Whether a retried attempt has the same effect as one attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One labelled call of a tool.

    `config` renders to the tool's configuration: everything under the label except `kind`,
    `eval` and `spec`. `deferrable` means that nothing reads the outcome, so that a frame may
    collect these calls and send them as one batch.
    """

    label: str
    kind: str
    config: Template
    rules: tuple[Rule, ...] = ()
    sets: Template | None = None
    """Names for the later tasks of this pipeline, rendered after each run, before the rules."""
    spec: Mapping[str, Json] = field(default_factory=dict)
    result: ResultPolicy | None = None
    """`spec.result`, if given."""
    rate: RatePolicy | None = None
    """`spec.rate`, if given."""
    is_read: bool = False
    """Whether templates of other steps read its result."""
    deferrable: bool = False
    sink: Sink | None = None
    """Set for the task of a sink; None: an author's own."""
    spelling: Spelling = Spelling.SPEC
    line: int = 0


class Mode(StrEnum):
    """How a loop iterates over its rows."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    CURSOR = "cursor"
    FANOUT = "fanout"


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePolicy:
    """Limits of a frame; None: the deployment's default."""

    size: int | None = None
    duration_ms: int | None = None
    memory_bytes: int | None = None
    parallelism: int | None = None
    """Frames of the stage that one worker runs at once."""
    row_concurrency: int | None = None
    """Concurrent rows of a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Rows that are not a list: `config` renders to the driver's configuration.

    kind postgres: `query` and `key` (keyset), or `claim` (a statement that stamps rows with
    the frame and returns them), with `auth` or `dsn`. kind kafka: `topic`.
    """

    kind: str
    form: str
    """keyset | claim | offsets"""
    config: Template
    is_fenced: bool = False
    """Whether a claim runs once for each frame, behind a fence that stores its rows, and the loop
    ends with an empty claim. The statement then need not know its frame."""
    is_whole: bool = False
    """Whether the tasks run once for each frame, with the list of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A step's loop. Exactly one of `source` (a list) and `cursor` is set."""

    iterator: str
    mode: Mode
    source: Template | None = None
    cursor: Cursor | None = None
    max_in_flight: int | None = None
    """Concurrent frames of the stage, over all workers; None: the deployment's default."""
    rows_in_flight: Template | None = None
    """Concurrent rows of the stage, over all workers, where the author limits rows."""
    tolerates_failures: bool = False
    """Whether the step succeeds although rows failed."""
    policy: FramePolicy | None = FramePolicy()
    """None is `frame_policy: null`: frames of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """A transition to a next step, taken when `when` holds (None: always)."""

    step: str
    when: Template | None = None
    args: Template | None = None
    sets: Template | None = None
    """Rendered when the arc is taken; a mapping merged into `ctx`."""
    handles_error: bool = False
    """Whether the arc is also considered when the step failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: guard, pipeline, loop, arcs."""

    name: str
    tasks: tuple[Task, ...] = ()
    when: Template | None = None
    loop: Loop | None = None
    arcs: tuple[Arc, ...] = ()
    inclusive: bool = False
    """True: every arc that holds is taken; False: the first."""
    sets: Template | None = None
    """Rendered when the step succeeded; a mapping merged into `ctx`."""
    on_error: str = "fail"
    """fail | continue"""
    pool: str = "default"
    persists: str | None = None
    """The step whose result this one persists, and whose arcs it has."""
    has_readers: bool = False
    """Whether a template reads the rows of this loop."""
    reads: frozenset[str] = frozenset()
    """Names read by the templates a worker renders: earlier steps, workload, ctx, args."""
    key_paths: frozenset[tuple[str, ...]] = frozenset()
    """The same names with the keys read below them."""
    awaits: frozenset[str] = frozenset()
    """For a join: the steps from which it can still be reached. It starts when none is active."""
    spelling: Spelling = Spelling.SPEC
    line: int = 0

    @property
    def is_playbook(self) -> bool:
        """Return whether the step is only one call of another playbook.

        The planner makes such a call itself; rules and options need a worker, and so do calls
        of NoETL's spelling, which may not wait.
        """
        if self.loop is not None or len(self.tasks) != 1 or self.tasks[0].kind != "playbook":
            return False
        task = self.tasks[0]
        return task.spelling is Spelling.SPEC and not task.rules and not task.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class KeychainEntry:
    """Named secrets of a playbook; `config` renders to what fills them."""

    name: str
    kind: str
    """static | bearer | credential | oauth2 | secrets"""
    config: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """A whole playbook; execution begins at `first`."""

    name: str
    path: str
    steps: Mapping[str, Step]
    first: str
    workload: Mapping[str, Json] = field(default_factory=dict)
    workload_templates: Mapping[str, Template] = field(default_factory=dict)
    """Defaults of the workload that are templates of other inputs."""
    returns: Template | None = None
    """The execution's result; None: that of the last step that ended."""
    credentials: Mapping[str, str] = field(default_factory=dict)
    """Alias to the name of a stored credential."""
    keychain: tuple[KeychainEntry, ...] = ()
    last: str | None = None
    """The step of the playbook's own sink, which runs after all others."""
    spelling: Spelling = Spelling.SPEC
    pool: str = "default"
    projections: tuple[Declaration, ...] = ()
    """Tables that projectors maintain from its executions."""
