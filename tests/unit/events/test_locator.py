"""The grammar of locators: every form, one spelling, and what is refused."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.events.locator import LEVELS, MAX_LENGTH, BadLocator, Locator, ResultUri, parse

DIGEST = "0123456789abcdef" * 4
ORG = "noetl://tenant/acme/org/care-network"
PLACE = f"{ORG}/cluster/prod-1/region/us-central1/zone/us-central1-a/node/pool-a-7b/process/1"

FORMS = {
    "noetl://tenant/acme": Locator("acme"),
    ORG: Locator("acme", "care-network"),
    f"{ORG}/payloads/sha256/{DIGEST}": Locator.payload("acme", "care-network", DIGEST),
    f"{ORG}/cluster/prod-1": Locator("acme", "care-network", "prod-1"),
    f"{ORG}/cluster/prod-1/node/n1": Locator("acme", "care-network", "prod-1", node="n1"),
    f"{ORG}/cluster/prod-1/region/eu": Locator("acme", "care-network", "prod-1", "eu"),
    f"{ORG}/cluster/c/worker/cpu-01": Locator(
        "acme", "care-network", "c", kind="worker", id=("cpu-01",)
    ),
    PLACE: Locator(
        "acme", "care-network", "prod-1", "us-central1", "us-central1-a", "pool-a-7b", "1"
    ),
    f"{PLACE}/worker/cpu-01": Locator(
        "acme",
        "care-network",
        "prod-1",
        "us-central1",
        "us-central1-a",
        "pool-a-7b",
        "1",
        "worker",
        ("cpu-01",),
    ),
    f"{ORG}/cluster/prod-1/region/global/none/none/none/stream/events/42/3": Locator(
        "acme", "care-network", "prod-1", "global", kind="stream", id=("events", "42", "3")
    ),
    f"{ORG}/cluster/c/region/eu/zone/a/cache/42/page": Locator(
        "acme", "care-network", "c", "eu", "a", kind="cache", id=("42", "page")
    ),
    f"{ORG}/frame-lease/42/7": Locator("acme", "care-network", kind="frame-lease", id=("42", "7")),
    f"{ORG}/cluster/c/projection-shard/frames/3": Locator(
        "acme", "care-network", "c", kind="projection-shard", id=("frames", "3")
    ),
    f"{ORG}/cluster/c/mcp-server/search": Locator(
        "acme", "care-network", "c", kind="mcp-server", id=("search",)
    ),
    "noetl://execution/123456/step/fetch_data/task/fetch_page/abc123": ResultUri(
        123456, "fetch_data", "fetch_page", "abc123"
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_every_form_parses_to_its_value_and_back(text: str) -> None:
    assert parse(text) == FORMS[text]
    assert str(parse(text)) == str(FORMS[text]) == text


REFUSED = [
    ("http://tenant/acme", "does not begin with noetl://"),
    ("NOETL://tenant/acme", "does not begin with noetl://"),
    ("noetl://", "segment 1 is empty"),
    ("noetl://acme", "segment 1 must be 'tenant' or 'execution'"),
    ("noetl://tenant", r"segment 1 \(tenant\) has no value"),
    ("noetl://tenant/", "segment 2 is empty"),
    ("noetl://tenant//org/x", "segment 2 is empty"),
    (f"{ORG}/", "segment 5 is empty"),
    ("noetl://tenant/..", r"tenant must not be '\.\.'"),
    (f"{ORG}/stream/./x", r"id segment 1 must not be '\.'"),
    ("noetl://tenant/%2E%2E", r"tenant must not be '\.\.'"),
    ("noetl://tenant/a%00b", "tenant contains a control character"),
    ("noetl://tenant/a\nb", "tenant contains a control character"),
    ("noetl://tenant/a b", "segment 2 'a b' must be written 'a%20b'"),
    ("noetl://tenant/a?b=1", "must be written 'a%3Fb%3D1'"),
    ("noetl://tenant/a%3ab", "segment 2 'a%3ab' must be written 'a%3Ab'"),
    ("noetl://tenant/%61cme", "segment 2 '%61cme' must be written 'acme'"),
    ("noetl://tenant/50%", "must be written '50%25'"),
    ("noetl://tenant/é", "must be written '%C3%A9'"),
    ("noetl://tenant/%C3", "segment 2 is not UTF-8"),
    ("noetl://%74enant/acme", "segment 1 '%74enant' must be written 'tenant'"),
    ("noetl://tenant/a/cluster/c", "cluster needs an org"),
    ("noetl://tenant/a/worker/w", "kind needs an org"),
    (f"{ORG}/node/n", "node needs a cluster"),
    (f"{ORG}/cluster/c/zone/z", "zone needs a region"),
    (f"{ORG}/cluster/c/process/1", "process needs a node"),
    (f"{ORG}/cluster/c/node/n/zone/z", "levels come in the order"),
    (f"{ORG}/Worker/w", "kind 'Worker' must be a word of lower-case"),
    (f"{ORG}/worker", "id is missing after the kind 'worker'"),
    (f"{ORG}/none/none/none/stream/x", "kind 'none'"),
    (f"{ORG}/cluster/c/region/global/stream/events", "segment 9 must be 'zone', 'node', or 'none"),
    (f"{ORG}/cluster/c/region/global/none/none/none", "before the kind of a resource"),
    (f"{ORG}/payloads/sha256/{DIGEST.upper()}", "64 lower-case hexadecimal"),
    (f"{ORG}/payloads/sha256/{DIGEST[:-1]}", "64 lower-case hexadecimal"),
    (f"{ORG}/payloads/md5/{DIGEST}", "64 lower-case hexadecimal"),
    (f"{ORG}/cluster/c/payloads/sha256/{DIGEST}", "cluster does not belong to a payload"),
    ("noetl://execution/1/step/s/task/t", "must have the form"),
    ("noetl://execution/1/step/s/job/t/k", "must have the form"),
    ("noetl://execution/x/step/s/task/t/k", "'x' is not a positive number"),
    ("noetl://execution/0/step/s/task/t/k", "0 is not a positive"),
    ("noetl://execution/007/step/s/task/t/k", "segment 2 '007' must be written '7'"),
    (f"noetl://execution/{2**63}/step/s/task/t/k", "not a positive 63-bit number"),
    ("noetl://tenant/" + "a" * 2034, "has 2049 characters, 2048 are allowed"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_what_names_nothing_is_refused_with_its_segment_and_reason(text: str, why: str) -> None:
    with pytest.raises(BadLocator, match=why):
        parse(text)


def test_the_longest_locator_is_accepted() -> None:
    text = "noetl://tenant/" + "a" * (MAX_LENGTH - len("noetl://tenant/"))
    assert str(parse(text)) == text


def test_a_value_that_could_not_be_written_cannot_be_built() -> None:
    with pytest.raises(BadLocator, match="2048 are allowed"):
        Locator("é" * 400)
    with pytest.raises(BadLocator, match="tenant is empty"):
        Locator("")
    with pytest.raises(BadLocator, match="tenant cannot be encoded as UTF-8"):
        Locator("\ud800")
    with pytest.raises(BadLocator, match="id needs a kind"):
        Locator("a", "b", id=("c",))


def test_a_thing_is_named_in_the_place_of_another() -> None:
    place = parse(PLACE)
    assert isinstance(place, Locator)
    assert str(place.thing("projector", "p", "0")) == f"{PLACE}/projector/p/0"


segments = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12).filter(
    lambda text: text not in (".", "..")
)
kinds = st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True).filter(
    lambda kind: kind not in {*LEVELS, "execution", "none", "payloads"}
)


@st.composite
def locators(draw: st.DrawFn) -> Locator:
    levels: dict[str, str] = {"tenant": draw(segments)}
    for level, outer in [
        ("org", "tenant"),
        ("cluster", "org"),
        ("region", "cluster"),
        ("zone", "region"),
        ("node", "cluster"),
        ("process", "node"),
    ]:
        if outer in levels and draw(st.booleans()):
            levels[level] = draw(segments)
    if "org" in levels and draw(st.booleans()):
        ids = draw(st.lists(segments, min_size=1, max_size=4))
        return Locator(**levels, kind=draw(kinds), id=tuple(ids))
    return Locator(**levels, id=())


results = st.builds(ResultUri, st.integers(1, 2**63 - 1), segments, segments, segments)


@given(locators() | results)
def test_what_is_built_parses_to_the_same_value(value: Locator | ResultUri) -> None:
    assert parse(str(value)) == value


@given(locators() | results, locators() | results)
def test_two_values_never_share_a_spelling(
    one: Locator | ResultUri, other: Locator | ResultUri
) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.text(st.sampled_from("noetlrgcusp/%.2Fe41 \x00é"), max_size=40))
def test_any_text_is_either_refused_or_its_own_spelling(tail: str) -> None:
    for text in (tail, f"noetl://{tail}", f"{ORG}/{tail}", f"{ORG}/cluster/c/region/r/{tail}"):
        try:
            value = parse(text)
        except BadLocator:
            continue
        assert str(value) == text


def test_a_full_locator_parses_fast_enough_for_every_event() -> None:
    text = f"{PLACE}/worker/cpu-01"
    unseen = min(timeit.repeat(lambda: parse.__wrapped__(text), number=200, repeat=5)) / 200
    assert unseen < 200e-6
