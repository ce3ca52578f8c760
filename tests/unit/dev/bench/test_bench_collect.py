"""What the writers of the collector's bench store."""

from __future__ import annotations

from streams.dev.bench.collect import _SHARED, _content
from streams.payload.objects.blocks import BLOCK_BYTES, NoCipher, pack
from streams.payload.port import Scope
from streams.payload.store import _ASK_FROM_BYTES


def test_some_contents_are_asked_for_before_they_are_written_and_some_are_streamed() -> None:
    """Else no writer relies on an object that it saw in its place, which is what can be lost."""
    contents = [_content(number) for number in range(_SHARED)]
    stored = [len(pack(Scope("a", "b"), data, "zstd", NoCipher())) for data in contents]
    assert min(stored) < _ASK_FROM_BYTES < sorted(stored)[_SHARED // 2]
    assert max(len(data) for data in contents) > BLOCK_BYTES
    assert len(set(contents)) == _SHARED
