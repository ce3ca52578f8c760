"""Of a loop's rows a step fetches the frames that its templates name by place, and no others."""

from __future__ import annotations

from itertools import count

import pytest

from streams.payload.arrow.rows import encode_rows
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, Scope
from streams.playbook.expressions import compile_value
from streams.playbook.template_compiler import list_positions
from streams.results.reading import MANIFEST, RowsPart, encode_manifest, read_some
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, ok
from tests.unit.worker.test_transparent import counted

SCOPE = Scope("acme", "care")
LOOP = """
metadata: {path: tests/a}
workflow:
  - step: a
    loop: {in: [1, 2, 3, 4], spec: {mode: sequential}, frame_policy: {size: 1}}
    tool: {kind: http}
    next: b
  - step: b
    tool: {kind: noop, data: "{{ %s }}"}
return: "{{ b.data }}"
"""


@pytest.mark.parametrize(
    ("said", "value", "reads"),
    [
        ("a.data[0].n", 0, 1),
        ("a.data[-1].n", 3, 1),
        ("a.result[2].n", 2, 1),
        ("(a.data | first).n + a.data[3].n", 3, 2),
        ("(a.data | last).n", 3, 1),
        ("a.data | length", 4, 0),
        ("[a.total, a.data | count]", [4, 4], 0),
        ("a.data[9] is defined", False, 0),
        ("a.data[a.total - 1].n", 3, 4),
        ("a.data[1:] | length", 3, 4),
        ("(a.data | map(attribute='n') | list) + [a.data[0].n]", [0, 1, 2, 3, 0], 4),
    ],
)
async def test_frames_are_fetched_as_far_as_their_rows_are_named(
    said: str, value: object, reads: int
) -> None:
    numbers = count()
    tool = FakeTool(lambda *_: ok({"n": next(numbers), "text": "x" * 100_000}))
    async with whole(LOOP % said, http=tool) as made:
        seen = counted(made.world.payloads)
        plan = await made.result()
    assert (plan.error, plan.result["data"]) == (None, value)
    assert len([ref for ref in seen if ref.byte_length > 50_000]) == reads


async def test_two_steps_that_name_other_rows_get_each_its_own() -> None:
    text = LOOP.replace("return:", "    next: c\n  - step: c\n    tool: %s\nreturn:") % (
        "a.data[0].n",
        '{kind: noop, data: "{{ [b.data, a.data[3].n] }}"}',
    )
    numbers = count()
    async with whole(
        text.replace("{{ b.data }}", "{{ c.data }}"),
        http=FakeTool(lambda *_: ok({"n": next(numbers), "text": "x" * 100_000})),
    ) as made:
        plan = await made.result()
    assert (plan.error, plan.result["data"]) == (None, [0, 3])


async def test_frames_whose_length_nobody_vouches_for_are_all_read() -> None:
    store = MemoryPayloadStore()
    parts = []
    for rows, counted_rows in ((["a", "b"], None), (["c"], 1)):
        data = encode_rows(rows).data
        ref = await store.put(SCOPE, data, media_type=ARROW, row_count=counted_rows)
        parts.append(RowsPart(1, ref))
    manifest = await store.put(SCOPE, encode_manifest(parts), media_type=MANIFEST)
    assert await read_some(store, manifest, [1]) == ["a", "b", "c"]


def test_a_way_says_which_place_of_a_list_it_leads_to() -> None:
    for text, way in {
        "{{ a.data[0] }}": ("a", "data", "[0]"),
        "{{ a.data[-2].b }}": ("a", "data", "[-2]"),
        "{{ a.data | length }}": ("a", "data", "[]"),
        "{{ a[0] }}": ("a",),
        "{{ a.data[true] }}": ("a", "data"),
        "{{ a.data | first(1) }}": ("a", "data"),
    }.items():
        assert compile_value(text).key_paths == {way}
    assert [list_positions(key) for key in ("[0]", "[-2]", "[]", "data")] == [(0,), (-2,), (), None]
