"""The memory and disk caches stay within their bounds."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from streams.events.model import PayloadRef
from streams.payload.content import describe
from streams.payload.port import JSON
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk import DiskCache, open_disk_cache
from streams.payload.tiers.disk_quota import DiskQuota
from streams.payload.tiers.process_cache import ENTRY_BYTES, ByteLru
from tests.support.payload.tiers import ACME


def payload(number: int, size: int = 4096) -> tuple[PayloadRef, bytes]:
    data = number.to_bytes(4, "big") * (size // 4)
    return describe(ACME, data, media_type=JSON), data


def test_the_memory_keeps_what_was_used_last() -> None:
    lru = ByteLru(4 * (ENTRY_BYTES + 10))
    for name in "abcd":
        lru.put(name, name.encode() * 10)
    assert lru.get("a") == b"a" * 10
    lru.put("e", b"e" * 10)
    assert lru.get("b") is None
    assert lru.get("a") is not None
    assert lru.bytes_in_use == 4 * (ENTRY_BYTES + 10)


def test_the_memory_counts_what_small_payloads_take_beside_their_bytes() -> None:
    lru = ByteLru(1 << 20)
    for number in range(10_000):
        lru.put(str(number), b"x")
    assert len(lru._cached) <= (1 << 20) // ENTRY_BYTES


def test_the_memory_keeps_nothing_that_would_push_the_rest_out() -> None:
    lru = ByteLru(4000)
    lru.put("a", b"a")
    lru.put("b", b"b" * 1001)
    assert lru.get("b") is None
    assert lru.bytes_in_use == ENTRY_BYTES + 1


def test_the_disk_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 10 * 4096, TierCounts())
    kept = [payload(number) for number in range(10)]
    for age, (ref, data) in enumerate(kept):
        cache.put(ref, data)
        (new,) = [p for p in tmp_path.glob("*/*") if p.stat().st_mtime > 10_000]
        os.utime(new, (age, age))
    first, last = kept[0], kept[9]
    assert cache.get(first[0]) == first[1]
    more = payload(99)
    cache.put(*more)
    assert cache.get(more[0]) == more[1]
    assert cache.get(first[0]) == first[1]
    assert cache.get(last[0]) == last[1]
    assert cache.get(kept[1][0]) is None
    assert cache.bytes_in_use <= 10 * 4096


def test_the_disk_is_still_there_after_a_restart_and_bounded_by_its_new_bound(
    tmp_path: Path,
) -> None:
    cache = DiskCache(tmp_path, 1 << 20, TierCounts())
    kept = [payload(number) for number in range(4)]
    for one in kept:
        cache.put(*one)
    again = open_disk_cache(tmp_path, 1 << 20, TierCounts())
    assert again is not None
    assert all(again.get(ref) == data for ref, data in kept)
    smaller = open_disk_cache(tmp_path, 8192, TierCounts())
    assert smaller is not None
    assert smaller.bytes_in_use == 8192
    assert sum(smaller.get(ref) is not None for ref, _ in kept) == 2


def test_a_file_that_was_never_finished_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "ab" / "abc.123.new"
    left.parent.mkdir()
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    assert open_disk_cache(tmp_path, 1 << 20, TierCounts()) is not None
    assert not left.exists()


def held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*/*"))


def test_what_is_being_written_counts_in_full_and_is_not_pushed_out(tmp_path: Path) -> None:
    bound = 10 * 4096
    cache = DiskCache(tmp_path, bound, TierCounts())
    refs = [payload(number, 8192) for number in range(20)]
    drafts = [cache.draft(ref) for ref, _ in refs]
    assert (held(tmp_path), cache.bytes_in_use) == (bound, bound)
    assert [draft is not None for draft in drafts] == [True] * 5 + [False] * 15
    for draft, (_, data) in zip(drafts[:2], refs, strict=False):
        assert draft is not None
        draft.write(data)
        draft.keep()
    for draft in drafts[2:5]:
        assert draft is not None
        draft.drop()
    assert (held(tmp_path), cache.bytes_in_use) == (4 * 4096, 4 * 4096)
    assert [cache.get(ref) is not None for ref, _ in refs[:3]] == [True, True, False]


def test_a_draft_that_somebody_has_removed_is_given_back_once(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20, TierCounts())
    cache.put(*payload(1))
    draft = cache.draft(payload(2)[0])
    assert draft is not None
    for path in tmp_path.glob("*/*.new"):
        path.unlink()
    cache.recount()
    draft.drop()
    assert cache.bytes_in_use == 4096


def test_two_writers_of_the_same_copy_are_counted_once(tmp_path: Path) -> None:
    cache, (ref, data) = DiskCache(tmp_path, 1 << 20, TierCounts()), payload(1)
    drafts = [cache.draft(ref), cache.draft(ref)]
    for draft in drafts:
        assert draft is not None
        draft.write(data)
        draft.keep()
    assert (held(tmp_path), cache.bytes_in_use) == (4096, 4096)


def test_what_is_in_use_is_what_was_known_last_while_somebody_holds_the_ledger(
    tmp_path: Path,
) -> None:
    cache = DiskCache(tmp_path, 1 << 20, TierCounts())
    cache.put(*payload(1))
    assert cache.bytes_in_use == 4096
    with DiskQuota(tmp_path / "ledger", lambda: 0).hold():
        assert cache.bytes_in_use == 4096


def test_a_disk_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert open_disk_cache(tmp_path / "file" / "below", 4096, TierCounts()) is None
    assert open_disk_cache(tmp_path, 0, TierCounts()) is None


def test_threads_share_a_ledger_without_losing_a_byte(tmp_path: Path) -> None:
    quota = DiskQuota(tmp_path / "ledger", lambda: 0, wait_s=60)

    def add() -> None:
        for _ in range(100):
            with quota.hold() as account:
                account.used += 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with quota.hold() as account:
        assert account.used == 400
