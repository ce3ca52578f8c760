"""Bad input: every rule of the envelope has its own error, which names the field."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from streams.events.catalogue import catalogue
from streams.events.errors import (
    BadEvent,
    BadField,
    ForeignPayload,
    InlineTooLarge,
    MissingField,
    MutablePayload,
    NotUtc,
    UnknownSchema,
)
from streams.events.locator import BadLocator, ResultUri
from streams.events.model import IpcHint, NewEvent, PayloadRef, Root
from streams.events.rules import check
from streams.events.seal import INLINE_MAX_BYTES
from tests.support.events.examples import AT, SHA256, TYPES, example, full_payload, payload, sealed

pytestmark = pytest.mark.usefixtures("either_sealer")

NAIVE = AT.replace(tzinfo=None)
ABROAD = AT.astimezone(timezone(timedelta(hours=2)))
FRAME = dict(example("frame.committed").meta)
DONE = dict(example("redrive.completed").meta)
CATALOG = dict(example("catalog.registered").meta)
FIRED = dict(example("schedule.fired").meta)


@pytest.mark.parametrize("name", TYPES)
def test_the_example_of_every_type_keeps_the_rules(name: str) -> None:
    assert check(example(name), catalogue()) is catalogue().types[name]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tenant_id": ""}, "tenant_id"),
        ({"tenant_id": None}, "tenant_id"),
        ({"organization_id": ""}, "organization_id"),
        ({"organization_id": None}, "organization_id"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"node_name": None}, "node_name"),
        ({"status": ""}, "status"),
        ({"meta": {k: v for k, v in FRAME.items() if k != "rows"}}, "meta.rows"),
        ({"payload_ref": payload(media_type="")}, "payload_ref.media_type"),
    ],
)
def test_a_missing_field_is_named(changes: dict[str, Any], field: str) -> None:
    _refused(MissingField, "frame.committed", changes, field)


def test_a_required_payload_may_not_be_missing() -> None:
    _refused(MissingField, "execution.checkpointed", {"payload_ref": None}, "payload_ref")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "frame.melted"}, "event_type"),
        ({"schema_version": 2}, "schema_version"),
        ({"schema_version": 0}, "schema_version"),
    ],
)
def test_an_unknown_schema_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(UnknownSchema) as refused:
        sealed(replace(example("frame.committed"), **changes))
    assert refused.value.field == field
    assert field in str(refused.value)


@pytest.mark.parametrize("at", [NAIVE, ABROAD])
def test_a_time_that_is_not_utc_is_refused(at: datetime) -> None:
    _refused(NotUtc, "frame.committed", {"event_time": at}, "event_time")
    ref = payload(ipc=IpcHint("n", "/s", "d", at))
    _refused(NotUtc, "frame.committed", {"payload_ref": ref}, "payload_ref.ipc.valid_until")


def test_a_zone_that_is_zero_by_another_name_is_utc() -> None:
    check(example("frame.committed", event_time=AT.astimezone(timezone(timedelta(0)))), catalogue())


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://bucket/acme/{SHA256}",
        "noetl://tenant/acme/org/care/results/latest",
        f"noetl://tenant/acme/org/care/payloads/sha256/{'00' * 32}",
        f"noetl://tenant/acme/org/care/payloads/sha256/{SHA256}/../x",
        f"https://example.org/payloads/sha256/{SHA256}",
        "",
    ],
)
def test_a_payload_path_whose_content_could_change_is_refused(uri: str) -> None:
    _refused(
        MutablePayload, "frame.committed", {"payload_ref": payload(uri=uri)}, "payload_ref.uri"
    )


@pytest.mark.parametrize("scope", [("globex", "care"), ("acme", "sales")])
def test_a_payload_of_another_tenant_or_organization_is_refused(scope: tuple[str, str]) -> None:
    _refused(ForeignPayload, "frame.committed", {"payload_ref": payload(*scope)}, "payload_ref.uri")


@pytest.mark.parametrize("name", ["context", "result"])
def test_data_above_the_inline_threshold_is_refused(name: str) -> None:
    fits = "x" * (INLINE_MAX_BYTES - 2)
    event = example("frame.committed", context=None, result=None)
    sealed(replace(event, **{name: fits}))
    with pytest.raises(InlineTooLarge) as refused:
        sealed(replace(event, **{name: fits + "x"}))
    assert refused.value.field == name
    assert str(INLINE_MAX_BYTES + 1) in str(refused.value)


def test_the_threshold_counts_bytes_and_all_fields_together() -> None:
    half = "é" * (INLINE_MAX_BYTES // 4)
    sealed(example("frame.committed", context=half, result=None))
    with pytest.raises(InlineTooLarge):
        sealed(example("frame.committed", context=half, result=half))


def test_an_error_text_counts_as_data() -> None:
    with pytest.raises(InlineTooLarge) as refused:
        sealed(example("frame.failed", context=None, result=None, error="x" * 70_000))
    assert refused.value.field == "error"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"a": {"b": float("nan")}}, "context.a.b"),
        ([1, float("inf")], "context[1]"),
        (float("-inf"), "context"),
        ({"a": {1: "x"}}, "context.a"),
        ({None: "x"}, "context"),
        ({"a": "x\x00y"}, "context.a"),
        ({"a": {"k\x00": 1}}, "context.a"),
        (["\ud800"], "context[0]"),
        ({"\udfff": 1}, "context"),
        ({"n": 2**64}, "context"),
        ({"n": -(2**63) - 1}, "context"),
        ({"price": Decimal("1.5")}, "context.price"),
        ({"at": AT}, "context.at"),
        ({"raw": b"x"}, "context.raw"),
        ({"set": {1}}, "context.set"),
    ],
)
def test_data_that_json_or_the_database_cannot_carry_is_refused(data: Any, field: str) -> None:
    _refused(BadField, "frame.committed", {"context": data}, field)


def test_data_nested_too_deep_is_refused_not_crashed_on() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    _refused(BadField, "frame.committed", {"context": deep}, "context")
    while deep:  # so that freeing it needs no recursion either
        deep = deep[0]


def test_data_nested_as_deep_as_allowed_is_carried() -> None:
    deep: list[Any] = []
    for _ in range(199):
        deep = [deep]
    sealed(example("frame.committed", context=deep))


@pytest.mark.parametrize("text", ["x\x00", "\ud800"])
def test_an_error_text_the_database_cannot_hold_is_refused(text: str) -> None:
    _refused(BadField, "frame.failed", {"error": text}, "error")


def test_an_error_text_may_have_lines() -> None:
    check(example("frame.failed", error="Traceback:\n\tit broke"), catalogue())


@pytest.mark.parametrize(
    ("name", "meta", "field"),
    [
        ("frame.committed", {**FRAME, "rows": 1.0}, "meta.rows"),
        ("frame.committed", {**FRAME, "rows": True}, "meta.rows"),
        ("frame.committed", {**FRAME, "rows": "3"}, "meta.rows"),
        ("frame.committed", {**FRAME, "rows": 2**53}, "meta.rows"),
        ("frame.committed", {**FRAME, "rows": None}, "meta.rows"),
        ("frame.committed", {**FRAME, "continues": 1}, "meta.continues"),
        ("frame.committed", {**FRAME, "colour": "red"}, "meta.colour"),
        ("frame.committed", {**FRAME, "frame_id": 7001}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "frame_id": "0"}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "frame_id": "01"}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "frame_id": "-1"}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "frame_id": str(2**63)}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "frame_id": "٣"}, "meta.frame_id"),
        ("frame.committed", {**FRAME, "worker": ""}, "meta.worker"),
        ("frame.committed", {**FRAME, "worker": "a\x00"}, "meta.worker"),
        ("frame.committed", {**FRAME, "worker": "a\nb"}, "meta.worker"),
        ("frame.committed", {**FRAME, "worker": "\ud800"}, "meta.worker"),
        ("frame.committed", {**FRAME, "worker": "x" * 513}, "meta.worker"),
        ("redrive.completed", {**DONE, "failed_rows": float("nan")}, "meta.failed_rows"),
        ("catalog.registered", {**CATALOG, "content_sha256": "AB" * 32}, "meta.content_sha256"),
        ("schedule.fired", {**FIRED, "fire_time": "2026-05-16 12:00"}, "meta.fire_time"),
        ("schedule.fired", {**FIRED, "fire_time": "2026-05-16T12:00:00+02:00"}, "meta.fire_time"),
        ("schedule.fired", {**FIRED, "fire_time": "٢٠٢٦-05-16T12:00:00.000Z"}, "meta.fire_time"),
        ("schedule.fired", {**FIRED, "fire_time": "2026-02-30T12:00:00.000Z"}, "meta.fire_time"),
        ("schedule.fired", {**FIRED, "fire_time": "2026-05-16T12:00:00Z"}, "meta.fire_time"),
        ("schedule.fired", {**FIRED, "fire_time": "2026-05-16T12:00:00.0000Z"}, "meta.fire_time"),
    ],
)
def test_a_wrong_routing_value_is_refused(name: str, meta: dict[str, Any], field: str) -> None:
    _refused(BadField, name, {"meta": meta}, field)


def test_a_choice_takes_only_what_the_catalogue_lists() -> None:
    meta = {**example("stage.opened").meta, "kind": "spiral"}
    _refused(BadField, "stage.opened", {"meta": meta}, "meta.kind")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"root": Root("tenant", 1)}, "root"),
        ({"root": Root("execution", 0)}, "root_id"),
        ({"root": Root("execution", -5)}, "root_id"),
        ({"root": Root("execution", 2**63)}, "root_id"),
        ({"root": Root("execution", True)}, "root_id"),
        ({"causation_id": 0}, "causation_id"),
        ({"parent_execution_id": 2**64}, "parent_execution_id"),
        ({"catalog_id": "7"}, "catalog_id"),
        ({"expected_version": -1}, "expected_version"),
        ({"expected_version": 2**63}, "expected_version"),
        ({"expected_version": True}, "expected_version"),
        ({"current_index": -1}, "current_index"),
        ({"current_index": True}, "current_index"),
        ({"tenant_id": "a\x00"}, "tenant_id"),
        ({"tenant_id": "."}, "tenant_id"),
        ({"tenant_id": "..", "payload_ref": None}, "tenant_id"),
        ({"tenant_id": "病" * 29, "payload_ref": None}, "tenant_id"),
        ({"organization_id": " " * 86}, "organization_id"),
        ({"organization_id": ".."}, "organization_id"),
        ({"organization_id": "a\x85b"}, "organization_id"),
        ({"tenant_id": 5}, "tenant_id"),
        ({"status": 5}, "status"),
        ({"idempotency_key": 5}, "idempotency_key"),
        ({"event_time": None}, "event_time"),
        ({"event_time": "2026-05-16T12:34:56Z"}, "event_time"),
        ({"root": None}, "root"),
        ({"root": Root("execution", None)}, "root_id"),  # type: ignore[arg-type]
        ({"meta": None}, "meta"),
        ({"payload_ref": "noetl://tenant/acme"}, "payload_ref"),
        ({"payload_ref": payload(uri=None)}, "payload_ref.uri"),
        ({"payload_ref": payload(sha256=5)}, "payload_ref.sha256"),
        ({"payload_ref": payload(byte_length=None)}, "payload_ref.byte_length"),
        ({"payload_ref": payload(ipc="here")}, "payload_ref.ipc"),
        ({"payload_ref": payload(ipc=IpcHint("n", "s", "d", None))}, "payload_ref.ipc.valid_until"),  # type: ignore[arg-type]
        ({"tenant_id": "a\ud800"}, "tenant_id"),
        ({"organization_id": "x" * 201}, "organization_id"),
        ({"idempotency_key": "x" * 513}, "idempotency_key"),
        ({"correlation_id": "a\nb"}, "correlation_id"),
        ({"trace": "\udc00"}, "trace"),
        ({"node_name": "a\x7f"}, "node_name"),
        ({"current_item": {"a": 1}}, "current_item"),
        ({"error": "it broke"}, "error"),
        ({"payload_ref": payload(sha256="AB" * 32)}, "payload_ref.sha256"),
        ({"payload_ref": payload(byte_length=-1)}, "payload_ref.byte_length"),
        ({"payload_ref": payload(row_count=1.5)}, "payload_ref.row_count"),
        ({"payload_ref": payload(compression="z\x00")}, "payload_ref.compression"),
        (
            {"payload_ref": payload(ipc=IpcHint("n", "\ud800", "d", AT))},
            "payload_ref.ipc.shm_name",
        ),
    ],
)
def test_a_wrong_field_is_refused(changes: dict[str, Any], field: str) -> None:
    _refused(BadField, "frame.committed", changes, field)


JUNK = (None, 0, 5, -1.5, True, "", "..", "\x85", b"x", [], ["x"], {}, {"a": 1}, object())


@pytest.mark.parametrize("name", [field.name for field in fields(NewEvent)])
def test_whatever_a_field_holds_it_is_carried_or_refused_by_a_name(name: str) -> None:
    for junk in JUNK:
        event = replace(example("frame.committed"), **{name: junk})
        try:
            sealed(event)
        except BadEvent as error:
            assert error.field.split(".")[0] in (name, "root_id", "event_type")  # noqa: PT017


@pytest.mark.parametrize("name", [field.name for field in fields(PayloadRef)])
def test_so_does_a_payload_reference(name: str) -> None:
    for junk in JUNK:
        event = example("frame.committed", payload_ref=replace(full_payload(), **{name: junk}))
        try:
            sealed(event)
        except BadEvent as error:
            assert error.field.startswith("payload_ref")  # noqa: PT017


def test_a_producer_that_is_no_locator_is_refused() -> None:
    result = str(ResultUri(1, "step", "task", "key"))
    for producer in ("not a locator", "", result):
        with pytest.raises(BadLocator, match="bad locator"):
            sealed(example("frame.committed"), producer=producer)


def test_a_payload_where_the_catalogue_knows_none_is_refused() -> None:
    _refused(BadField, "frame.claimed", {"payload_ref": payload()}, "payload_ref")


def _refused(error: type[BadEvent], name: str, changes: dict[str, Any], field: str) -> None:
    """The class is exactly this one, so that callers can tell the reasons apart."""
    with pytest.raises(BadEvent) as refused:
        sealed(replace(example(name), **changes))
    assert type(refused.value) is error
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{name}: {field}: ")
