"""Result envelopes: the result of a task, a step or a command, as events carry it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streams.events.model import Json, PayloadRef
from streams.events.reading import fields_of, text_of
from streams.payload.content import reference_from, reference_json
from streams.payload.port import Scope
from streams.playbook.views import result_view
from streams.results.reference import ResultRef
from streams.results.spill import Group, groups_of

if TYPE_CHECKING:
    EnvelopeFields: TypeAlias = Mapping[str, Json]
else:  # pydantic loads and stores plans, and need not check what events have carried
    EnvelopeFields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The result of a task, a step or a command.

    `fields` is its JSON, unchanged: parsing costs nothing, what is unknown here is passed on,
    and a key that is absent stays absent. `status` and `meta` are always there in results of
    our own; the data is `data`, or a payload that `ref` (a result of its own) or `_ref` (the
    payload of the event) names; `extracted` is there where `spec.result` is, `counts` where a
    loop's rows are the data.
    """

    fields: EnvelopeFields

    @classmethod
    def parse(cls, value: Json) -> Envelope:
        """Return the envelope that an event carries; any value but an object has no fields."""
        return cls(value if isinstance(value, dict) else {})

    @classmethod
    def of(
        cls, status: str | None, data: Json = None, meta: Mapping[str, Json] | None = None
    ) -> Envelope:
        """Return an envelope that has its data."""
        return cls({"status": status, "data": data, "meta": dict(meta or {})})

    @property
    def status(self) -> str | None:
        """`success`, `error` or `skipped`."""
        return text_of(self.fields.get("status"))

    @property
    def has_data(self) -> bool:
        """Whether the data is here, not in a payload; it may be null."""
        return "data" in self.fields

    @property
    def data(self) -> Json:
        """The data, where it is here."""
        return self.fields.get("data")

    @property
    def reference(self) -> ResultRef | None:
        """The reference of a result that is stored on its own."""
        return ResultRef.parse(self.fields.get("ref"))

    @property
    def payload(self) -> PayloadRef | None:
        """The payload of the event that carried this, where that is the data."""
        found = self.fields.get("_ref")
        return reference_from(found) if isinstance(found, dict) else None

    @property
    def tasks(self) -> Mapping[str, Envelope | None]:
        """The results of the step's tasks that other steps read; None: the step's own."""
        found = fields_of(self.fields.get("tasks"))
        return {label: None if one is None else Envelope.parse(one) for label, one in found.items()}

    @property
    def spilled_tasks(self) -> list[Group]:
        """Payloads with the results of tasks that the event could not carry."""
        return groups_of(self.fields.get("tasks_elsewhere"))

    @property
    def ctx(self) -> Mapping[str, Json]:
        """Changes of `ctx`."""
        return fields_of(self.fields.get("ctx"))

    @property
    def spilled_ctx(self) -> list[Group]:
        """Payloads with changes of `ctx` that the event could not carry."""
        return groups_of(self.fields.get("ctx_elsewhere"))

    def data_payload(self, owner: Scope) -> PayloadRef | None:
        """Return the payload that has the data; None where the data is here, or nowhere."""
        if self.has_data:
            return None
        if (found := self.payload) is not None:
            return found
        reference = self.reference
        return None if reference is None else reference.payload(owner)

    def payloads(self, owner: Scope) -> Iterator[tuple[str | None, str]]:
        """Yield the names of data that is in payloads: the step's own (None) and its tasks'."""
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
        """Return it with the payload of its event; None: that has none."""
        return self if ref is None else self.with_fields(_ref=reference_json(ref))

    def with_tasks(self, found: Mapping[str, Json]) -> Envelope:
        """Return it with the results of tasks put in that the event could not carry."""
        whole = self.without("tasks_elsewhere")
        return (
            whole.with_fields(tasks={**fields_of(self.fields.get("tasks")), **found})
            if found
            else whole
        )

    def with_data(self, found: Mapping[str | None, Json]) -> Envelope:
        """Return it with data put in, by the task it belongs to; None is the step's own."""
        whole = {name: one for name, one in self.fields.items() if name != "_ref"}
        for task, data in found.items():
            if task is None:
                whole["data"] = data
            else:
                tasks = fields_of(whole["tasks"])
                whole["tasks"] = {**tasks, task: {**fields_of(tasks[task]), "data": data}}
        return Envelope(whole)

    def slim(self) -> Envelope:
        """Return it with nothing in its reference that `result.stored` has too."""
        reference = self.reference
        return self if reference is None else self.with_fields(ref=reference.slim().to_json())

    def view(self) -> dict[str, object]:
        """Return what templates see under the name of the step or task."""
        return result_view(self.fields)

    def to_json(self) -> dict[str, Json]:
        """Return its JSON, as events carry it."""
        return dict(self.fields)
