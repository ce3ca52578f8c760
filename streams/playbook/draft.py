"""A playbook under construction: compiles templates and collects problems with their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.events.model import Json
from streams.playbook.errors import BadTemplate
from streams.playbook.expressions import compile_value, is_text
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.template import Constant, Template, mapping, sequence
from streams.playbook.template_compiler import STRICT, NameRules
from streams.playbook.yaml_document import Authored, Document, Path

ALWAYS = ("workload", "ctx", "vars", "iter", "args", "execution_id", "path")
"""Names that every template of a step can read."""
IN_PIPELINES = ("outcome", "_prev", "_loop")
"""Names that templates of a running pipeline can read besides the labels of its tasks."""
IN_SINKS = frozenset({"result", "data", "this"})
"""Names that templates of a sink can read: its data (two names) and its envelope."""
_BEFORE = (("when",), ("loop",))
"""Parts of a step that are rendered before its tasks run."""
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSource:
    """The parts of a document that steps are compiled from."""

    top: Authored
    """The whole playbook."""
    steps: Mapping[str, Authored]
    """Each step by its name."""
    paths: Mapping[str, Path]
    """Where each step is."""
    workbook: Mapping[str, Authored]
    """Named actions that tasks may refer to."""
    pool: str
    """The worker pool of steps that name none."""


@dataclass(slots=True)
class PlaybookDraft:
    """A document that is being compiled into a playbook."""

    document: Document
    steps: tuple[str, ...] = ()
    mentions: list[tuple[Path, Template]] = field(default_factory=list)
    given: dict[str, set[str]] = field(default_factory=dict)
    """Names of the arguments that arcs give to a step."""
    credentials: Mapping[str, str] = field(default_factory=dict)
    """The playbook's credentials: alias to stored name."""
    name_rules: NameRules = STRICT
    """How the templates compiled now read names."""
    clients: bool = True
    """Whether a package that is not installed is a problem: a worker may have it."""

    @property
    def new_error(self) -> Severity:
        """Severity of an error that earlier releases accepted: registered playbooks still run."""
        return Severity.ERROR if self.clients else Severity.WARNING

    def report(
        self,
        path: Path,
        message: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
        *,
        at_key: bool = False,
    ) -> None:
        """Add a problem."""
        self.document.report(path, message, hint, severity, at_key=at_key)

    def template(self, path: Path, value: Json) -> Template:
        """Compile a value; an invalid template is reported and becomes a constant."""
        if isinstance(value, dict):
            parts = {key: self.template((*path, key), item) for key, item in value.items()}
            return mapping(parts)
        if isinstance(value, list):
            return sequence([self.template((*path, at), item) for at, item in enumerate(value)])
        try:
            made = compile_value(value, self.name_rules)
        except BadTemplate as error:
            line = f" (line {error.line} of this text)" if error.line > 1 else ""
            what = f"is not a valid template: {error.why}{line}"
            if self.name_rules.lenient:
                self.report(path, f"{what}; it stays text", None, Severity.WARNING)
            else:
                self.report(path, what)
            return Constant(value)
        if made.names:
            self.mentions.append((path, made))
        return made

    def condition(self, path: Path, value: Json) -> Template:
        """Compile a condition."""
        made = self.template(path, value)
        if is_text(made):
            hint = "write it as one expression: {{ … }}, with nothing around it"
            self.report(path, "is a text, which is always true", hint)
        return made

    def optional_condition(self, path: Path, holder: Authored) -> Template | None:
        """Compile the `when` of a step or an arc."""
        value = holder.get("when")
        return None if value is None else self.condition((*path, "when"), value)

    def changes(self, path: Path, holder: Authored, key: str) -> Template | None:
        """Compile names with their new values."""
        value = holder.get(key)
        if value is None:
            return None
        made = self.template((*path, key), value)
        if is_text(made):
            hint = "write names and values, or one expression that gives a mapping"
            self.report((*path, key), "is a text, not a mapping", hint)
        return made

    def check_names(self, known: Mapping[Path, frozenset[str]]) -> None:
        """Warn of unknown names; `known` has by path the names that a step adds."""
        for path, template in self.mentions:
            names = {*ALWAYS, *self.steps, *known.get(path[:2], ())}
            if path[:1] == ("return",) or path[2:3] in _BEFORE:
                names.discard("vars")  # no rule of a step has set any
            if "sink" in path:
                names |= IN_SINKS
            for name in sorted(template.names - names):
                self.report(
                    path,
                    f"{name!r} is not a known name here",
                    nearest(name, sorted(names)) or "steps, workload, ctx, args, vars, iter are",
                    Severity.WARNING,
                )
