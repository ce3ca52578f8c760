"""Result envelopes: results of tasks, steps and commands in events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streams.events.model import Json, PayloadRef
from streams.events.reading import fields_of, text_of
from streams.payload.content import reference_from, reference_json
from streams.payload.port import Scope
from streams.playbook.plain_views import plain_view
from streams.playbook.spelling import Spelling
from streams.playbook.views import result_view
from streams.results.reference import ResultRef
from streams.results.spill import Group, groups_of

if TYPE_CHECKING:
    EnvelopeFields: TypeAlias = Mapping[str, Json]
else:  # pydantic loads and stores plans, and need not validate data of events
    EnvelopeFields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The result of a task, a step or a command.

    `fields` is its JSON, unchanged: parsing costs nothing, unknown keys are passed on, and
    absent keys stay absent. Our own results always have `status` and `meta`; the data is `data`,
    or a payload named by `ref` (a stored result) or `_ref` (the payload of the event); with
    `spec.result` there is `extracted`, with a loop's rows `counts`.
    """

    fields: EnvelopeFields

    @classmethod
    def parse(cls, value: Json) -> Envelope:
        """Parse the envelope of an event; a value that is not an object has no fields."""
        return cls(value if isinstance(value, dict) else {})

    @classmethod
    def of(
        cls, status: str | None, data: Json = None, meta: Mapping[str, Json] | None = None
    ) -> Envelope:
        """Return an envelope with inline data."""
        return cls({"status": status, "data": data, "meta": dict(meta or {})})

    @property
    def status(self) -> str | None:
        """`success`, `error` or `skipped`."""
        return text_of(self.fields.get("status"))

    @property
    def has_data(self) -> bool:
        """Whether the data is inline; it may be null."""
        return "data" in self.fields

    @property
    def data(self) -> Json:
        """The inline data."""
        return self.fields.get("data")

    @property
    def reference(self) -> ResultRef | None:
        """The reference of a stored result."""
        return ResultRef.parse(self.fields.get("ref"))

    @property
    def payload(self) -> PayloadRef | None:
        """The payload of its event, if that is the data."""
        found = self.fields.get("_ref")
        return reference_from(found) if isinstance(found, dict) else None

    @property
    def tasks(self) -> Mapping[str, Envelope | None]:
        """The results of the step's tasks that other steps read; None: the step's own."""
        found = fields_of(self.fields.get("tasks"))
        return {label: None if one is None else Envelope.parse(one) for label, one in found.items()}

    @property
    def spilled_tasks(self) -> list[Group]:
        """Payloads of spilled task results."""
        return groups_of(self.fields.get("tasks_elsewhere"))

    @property
    def ctx(self) -> Mapping[str, Json]:
        """Changes of `ctx`."""
        return fields_of(self.fields.get("ctx"))

    @property
    def vars(self) -> Mapping[str, Json]:
        """Values that the step's rules have set."""
        return fields_of(self.fields.get("vars"))

    @property
    def spilled_ctx(self) -> list[Group]:
        """Payloads of spilled changes of `ctx`."""
        return groups_of(self.fields.get("ctx_elsewhere"))

    def data_payload(self, owner: Scope) -> PayloadRef | None:
        """Return the payload of the data; None if it is inline or absent."""
        if self.has_data:
            return None
        if (found := self.payload) is not None:
            return found
        reference = self.reference
        return None if reference is None else reference.payload(owner)

    def payloads(self, owner: Scope) -> Iterator[tuple[str | None, str]]:
        """Yield task and payload name of data in payloads; the step's own task is None."""
        for label, one in ((None, self), *self.tasks.items()):
            if one is not None and (ref := one.data_payload(owner)) is not None:
                reference = one.reference
                yield label, (None if reference is None else reference.uri) or ref.uri

    def with_fields(self, **fields: Json) -> Envelope:
        """Return it with these fields set."""
        return Envelope({**self.fields, **fields})

    def without(self, *names: str) -> Envelope:
        """Return it without these fields."""
        return Envelope({name: one for name, one in self.fields.items() if name not in names})

    def with_payload(self, ref: PayloadRef | None) -> Envelope:
        """Return it with the payload of its event, if any."""
        return self if ref is None else self.with_fields(_ref=reference_json(ref))

    def with_tasks(self, found: Mapping[str, Json]) -> Envelope:
        """Return it with spilled task results inserted."""
        whole = self.without("tasks_elsewhere")
        return (
            whole.with_fields(tasks={**fields_of(self.fields.get("tasks")), **found})
            if found
            else whole
        )

    def with_data(self, found: Mapping[str | None, Json]) -> Envelope:
        """Return it with data inserted by task; None is the step's own."""
        whole = {name: one for name, one in self.fields.items() if name != "_ref"}
        for task, data in found.items():
            if task is None:
                whole["data"] = data
            else:
                tasks = fields_of(whole["tasks"])
                whole["tasks"] = {**tasks, task: {**fields_of(tasks[task]), "data": data}}
        return Envelope(whole)

    def slim(self) -> Envelope:
        """Return it without the fields of its reference that `result.stored` has too."""
        reference = self.reference
        return self if reference is None else self.with_fields(ref=reference.slim().to_json())

    def view(self, spelling: Spelling = Spelling.SPEC) -> object:
        """Return what templates see under the name of the step or task."""
        return (plain_view if spelling is Spelling.NOETL else result_view)(self.fields)

    def to_json(self) -> dict[str, Json]:
        """Return its JSON, as events carry it."""
        return dict(self.fields)
