from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from streams.playbook.parse import check, parse
from streams.playbook.problem import Severity
from streams.playbook.result_policy import ResultPolicy, Unselectable
from streams.playbook.views import ASKED_BYTES, result_view, wants_data


def text(result: Any = None, *more: Any, **step: Any) -> str:
    task = {"kind": "noop", **({} if result is None else {"spec": {"result": result}})}
    first = {"step": "start", "tool": [{"page": task}, {"last": {"kind": "noop"}}], **step}
    return yaml.safe_dump(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "t", "path": "t"},
            "workflow": [first, *more],
        }
    )


def policy(result: Any) -> ResultPolicy:
    found = parse(text(result)).steps["start"].tasks[0].result
    assert found is not None
    return found


def test_a_task_that_says_nothing_has_no_policy() -> None:
    assert parse(text()).steps["start"].tasks[0].result is None


@pytest.mark.parametrize(
    ("ttl", "meant"),
    [
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1y", timedelta(days=365)),
        ("permanent", None),
    ],
)
def test_times_to_live_are_read(ttl: str, meant: timedelta | None) -> None:
    assert policy({"store": {"kind": "auto", "ttl": ttl}}).ttl == meant


def test_a_result_with_a_store_ends_with_its_execution_unless_told_otherwise() -> None:
    assert policy({"store": {"kind": "kv"}}).scope == "execution"
    assert policy({"store": {"kind": "kv", "ttl": "permanent"}}).scope == "permanent"
    assert policy({"store": {"kind": "kv", "scope": "workflow"}}).scope == "workflow"
    assert policy({"select": []}).scope == "permanent"


@pytest.mark.parametrize(
    ("kind", "size", "store"),
    [
        ("auto", 1_000, None),
        ("auto", 40_000, "kv"),
        ("auto", 1_000_000, "object"),
        ("auto", 10_000_000, "s3"),
        ("db", 10, "db"),
        ("eventlog", 10, None),
        ("eventlog", 100_000, "kv"),
    ],
)
def test_the_size_chooses_the_store_unless_the_author_does(
    kind: str, size: int, store: str | None
) -> None:
    assert ResultPolicy(kind=kind).store_of(size) == store


@pytest.mark.parametrize("large", ["s3", "gcs", "object"])
def test_large_results_name_the_payload_store_that_there_is(large: str) -> None:
    for kind in ("auto", "eventlog"):
        assert ResultPolicy(kind=kind).store_of(10_000_000, large=large) == large
        assert ResultPolicy(kind=kind).place_of(10_000_000, large) == large
    # Who named a store reads that name again, whatever the payload store is.
    assert ResultPolicy(kind="minio").store_of(10_000_000, large=large) == "minio"


def test_more_than_an_event_carries_is_told() -> None:
    made, (problem,) = check(text({"inline_max_bytes": 65_536}))
    assert made is not None
    assert problem.where == "workflow[0].tool[0].page.spec.result.inline_max_bytes"
    assert "at most 32768 bytes" in problem.message
    assert check(text({"inline_max_bytes": 32_768}))[1] == ()


def test_a_result_has_an_end_or_has_none() -> None:
    book = text({"store": {"kind": "kv", "ttl": "permanent", "scope": "execution"}})
    made, (problem,) = check(book)
    assert made is None
    assert "expires with its execution" in problem.message
    # What was registered before this was an error runs on.
    assert parse(book, clients=False).steps["start"]
    assert check(text({"store": {"ttl": "permanent", "scope": "permanent"}}))[1] == ()


def test_selected_fields_are_found_by_their_paths() -> None:
    select = [
        {"path": "$.paging.hasMore", "as": "more"},
        {"path": "$.rows[0].id"},
        {"path": "$.rows[*].id", "as": "ids"},
        {"path": "$.gone", "as": "gone"},
    ]
    found = policy({"select": select}).extract(
        {"paging": {"hasMore": False}, "rows": [{"id": 1}, {"id": 2}]}
    )
    assert found == {"more": False, "id": 1, "ids": [1, 2]}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"store": {"kind": "auto", "ttl": "soon"}}, "'soon' is not a valid time to live"),
        ({"store": {"kind": "tape"}}, "tape"),
        ({"store": {"kind": "kv", "ttl": "1h", "scope": "permanent"}}, "sets an expiry"),
        ({"store": {"kind": "kv", "scope": "week"}}, "week"),
        ({"select": [{"path": "$.a[", "as": "a"}]}, "is not a valid JSONPath"),
        ({"select": [{"path": "$.a", "as": "no name"}]}, "is not a valid name in templates"),
        ({"select": [{"path": "$.a"}, {"path": "$.b.a"}]}, "selected twice"),
        ({"select": [{"path": "$[?@.a==1e400]", "as": "a"}]}, "is not a valid JSONPath"),
        ({"select": [{"path": f"$[?{'!' * 3_000}@.a]", "as": "a"}]}, "is not a valid JSONPath"),
        (
            {"store": {"kind": "kv", "ttl": "\N{ARABIC-INDIC DIGIT THREE}h"}},
            "not a valid time to live",
        ),
        ({"selekt": []}, "selekt"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(result: Any, said: str) -> None:
    playbook, problems = check(text(result))
    assert playbook is None
    matching = [problem for problem in problems if said in str(problem)]
    assert matching
    assert matching[0].line > 1


def test_tasks_and_rows_that_others_read_are_known() -> None:
    loop = {"in": [1, 2], "iterator": "n"}
    rows = {"step": "rows", "loop": loop, "tool": {"kind": "noop"}, "next": "end"}
    args = {"a": "{{ start.page.x }}", "b": "{{ rows.result }}", "c": "{{ quiet.total }}"}
    quiet = {"step": "quiet", "loop": loop, "tool": {"kind": "noop"}, "next": "rows"}
    end = {"step": "end", "tool": {"kind": "noop", "data": args}}
    steps = parse(text(None, quiet, rows, end, next="quiet")).steps
    assert [task.is_read for task in steps["start"].tasks] == [True, False]
    assert (steps["rows"].has_readers, steps["quiet"].has_readers) == (True, False)


def test_a_result_elsewhere_is_seen_by_its_reference_and_selected_fields() -> None:
    ref = {"ref": "noetl://x", "store": "kv", "meta": {"bytes": 9}, "preview": {"_items": 2}}
    own = {"status": "success", "meta": {}, "ref": ref, "extracted": {"page": 1}}
    seen = result_view({**own, "tasks": {"fetch": {**own, "data": {"a": 5}}, "last": None}})
    assert (seen["_ref"], seen["_store"], seen["_meta"]) == ("noetl://x", "kv", {"bytes": 9})
    assert (seen["_preview"], seen["page"]) == ({"_items": 2}, 1)
    assert (seen["fetch"]["a"], seen["fetch"]["_ref"]) == (5, "noetl://x")
    assert seen["last"]["extracted"] == {"page": 1}


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ((), True),
        (("data",), True),
        (("rows",), True),
        (("result",), True),
        (("result", "data"), True),
        (("result", "extracted", "page"), False),
        (("get",), True),
        (("_ref",), False),
        (("extracted", "page"), False),
        (("page",), False),
        (("status",), False),
        (("error",), True),
        (("ref",), True),
        (("fetch", "data"), False),
    ],
)
def test_only_ways_into_the_data_want_it(keys: tuple[str, ...], wanted: bool) -> None:
    envelope = {"extracted": {"page": 1}, "tasks": {"fetch": {}}}
    assert wants_data(keys, envelope) is wanted


@pytest.mark.parametrize("name", ["error", "extracted", "_ref", "_store", "_meta", "_preview"])
def test_the_data_tells_where_the_result_has_no_such_name_of_its_own(name: str) -> None:
    envelope: dict[str, Any] = {"status": "success", "meta": {}, "ref": {"ref": "noetl://x"}}
    assert wants_data((name,), envelope)
    assert result_view({**envelope, "data": {name: "mine"}})[name] == "mine"
    assert not wants_data((name,), {**envelope, "extracted": {}, "error": None})


def test_asking_whether_a_result_failed_does_not_fetch_what_is_very_large() -> None:
    for size, wanted in ((ASKED_BYTES, True), (ASKED_BYTES + 1, False)):
        ref = {"ref": "noetl://x", "meta": {"bytes": size}}
        envelope = {"status": "success", "meta": {}, "ref": ref}
        assert wants_data(("error", "kind"), envelope) is wanted
        assert wants_data(("data", "error"), envelope)
        assert wants_data(("rows",), envelope)


@pytest.mark.parametrize("label", ["data", "result", "status", "meta"])
def test_a_results_own_names_win_over_labels_whatever_its_size(label: str) -> None:
    tasks: dict[str, Any] = {label: {"status": "error", "data": 1, "meta": {}}, "last": None}
    small = {"status": "success", "meta": {"a": 1}, "data": 2, "tasks": tasks}
    large = {**{k: v for k, v in small.items() if k != "data"}, "ref": {"ref": "noetl://x"}}
    assert wants_data((label,), large) is wants_data((label,), small)
    assert result_view({**large, "data": 2})[label] == result_view(small)[label]
    assert result_view(small)["data"] == 2


LOOP = {"in": [1, 2], "iterator": "n"}


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("{{ start.page }}", "return what is needed of page from last"),
        ("{{ start.page._ref }}", "return what is needed of page from last"),
        ("{{ start.last.data }}", "{{ start.data[0] }}"),
    ],
)
def test_a_task_of_a_loop_has_no_one_result_and_check_says_what_to_write(
    template: str, hint: str
) -> None:
    use = {"step": "use", "tool": {"kind": "noop", "data": {"x": template}}}
    book = text(None, use, loop=LOOP, next="use")
    made, (problem,) = check(book)
    assert made is None
    assert problem.where == "workflow[1].tool.data.x"
    assert "start is a loop" in problem.message
    assert hint in (problem.hint or "")
    # What was registered before this was an error runs on.
    assert parse(book, clients=False).steps["use"]


@pytest.mark.parametrize(
    "template", ["{{ start.data }}", "{{ start.result }}", "{{ start.total }}"]
)
def test_what_a_loop_has_of_its_own_can_be_named(template: str) -> None:
    use = {"step": "use", "tool": {"kind": "noop", "data": template}}
    assert check(text(None, use, loop=LOOP, next="use"))[1] == ()


def test_a_loops_tasks_may_name_each_other() -> None:
    tool = [{"page": {"kind": "noop"}}, {"last": {"kind": "noop", "data": "{{ page.data }}"}}]
    assert check(text(None, loop=LOOP, tool=tool))[1] == ()


def test_what_is_too_large_for_kv_is_an_object() -> None:
    chosen = policy({"store": "kv"})
    assert [chosen.store_of(size) for size in (1, 999_999, 1_000_000)] == ["kv", "kv", "object"]


@pytest.mark.parametrize(
    ("template", "is_warned"),
    [
        ("{{ start.page }}", True),
        ("{{ start.page.data.rows }}", True),
        ("{{ start.page.next }}", False),
        ("{{ start.page._ref }}", False),
        ("{{ start.last.data }}", False),
        ("{{ start.data }}", False),
    ],
)
def test_a_result_that_ends_with_its_step_is_not_for_other_steps(
    template: str, is_warned: bool
) -> None:
    result = {"store": {"kind": "s3", "scope": "step"}, "select": [{"path": "$.next"}]}
    use = {"step": "use", "tool": {"kind": "noop", "data": {"x": template}}}
    made, problems = check(text(result, use, next="use"))
    assert made is not None
    assert [problem.where for problem in problems] == ["workflow[1].tool.data.x"] * is_warned
    assert all("scope: execution" in (problem.hint or "") for problem in problems)


@pytest.mark.parametrize("ttl", ["0s", "0d", "999999y", "1001y"])
def test_a_life_that_no_time_can_end_is_refused(ttl: str) -> None:
    _, problems = check(text({"store": {"kind": "kv", "ttl": ttl}}))
    assert [one.where for one in problems if "time to live" in one.message] == [
        "workflow[0].tool[0].page.spec.result.store.ttl"
    ]


@pytest.mark.parametrize("name", ["data", "_ref", "_meta", "status", "result", "extracted"])
def test_a_selected_field_hides_nothing_that_templates_look_for(name: str) -> None:
    _, problems = check(text({"select": [{"path": "$.a", "as": name}]}))
    assert [one for one in problems if f"{name!r} means something else" in one.message]


@pytest.mark.parametrize(
    "select", [{"path": "$.a", "as": "page"}, {"path": "$.a.page"}, {"path": "$.a", "as": "last"}]
)
def test_a_selected_field_that_is_called_like_its_task_is_warned_of(select: Any) -> None:
    made, problems = check(text({"select": [select]}))
    assert made is not None
    matching = [(one.where, one.severity) for one in problems if "is the label" in one.message]
    where = "workflow[0].tool[0].page.spec.result.select"
    assert matching == [(where, Severity.WARNING)] * (select.get("as") != "last")


@pytest.mark.parametrize("label", ["data", "_ref", "result", "error", "ctx", "_prev"])
def test_a_label_hides_nothing_that_templates_look_for(label: str) -> None:
    book = text(None, tool=[{label: {"kind": "noop"}}, {"last": {"kind": "noop"}}])
    made, (problem,) = check(book)
    assert made is None
    assert f"label {label!r} means something else" in problem.message
    # What was registered before this was an error runs on.
    assert parse(book, clients=False).steps["start"]


def test_a_path_that_is_too_deep_to_follow_is_named() -> None:
    deep: Any = {"a": 1}
    for _ in range(300):
        deep = {"b": deep}
    with pytest.raises(Unselectable, match="'q'"):
        policy({"select": [{"path": "$..a", "as": "q"}]}).extract(deep)


@pytest.mark.parametrize("whole", [True, False])
def test_a_reference_shows_its_names_whether_or_not_its_data_was_fetched(whole: bool) -> None:
    ref = {"ref": "noetl://x", "store": "kv", "meta": {"bytes": 5}, "preview": {"a": 1}}
    envelope = {"status": "success", "meta": {}, "ref": ref, **({"data": [1]} if whole else {})}
    of_step = {**envelope, "tasks": {"page": None}}
    for view in (result_view(envelope), result_view(of_step)["page"]):
        assert (view["_ref"], view["_store"]) == ("noetl://x", "kv")
        assert (view["_meta"], view["_preview"]) == ({"bytes": 5}, {"a": 1})


@pytest.mark.parametrize("kind", ["artifact", "result"])
def test_check_says_what_an_artifact_that_is_put_leaves_out(kind: str) -> None:
    result = {"store": {"kind": "db"}, "select": [{"path": "$.a", "as": "a"}]}
    task = {"kind": kind, "action": "put", "data": "x", "spec": {"result": result}}
    made, problems = check(text(tool=[{"page": task}]))
    assert made is not None
    assert sorted(one.message for one in problems) == [
        "nothing is selected from what is put",
        "what is put goes to the payload store, with no copy in db",
    ]
