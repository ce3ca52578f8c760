"""A bundle of an execution: deterministic, complete, and damage anywhere is found and named."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest

from streams.clock import SystemClock
from streams.projector import snapshots
from streams.replay.bundle.archive import END, entry
from streams.replay.bundle.errors import NewerBundle, NotABundle, PayloadNotStored
from streams.replay.bundle.file import open_bundle
from streams.replay.bundle.log import BundleLog
from streams.replay.bundle.manifest import DIGESTS, FORMAT, MANIFEST, sealed_json
from streams.replay.bundle.verify import BundleReport, verify_bundle
from streams.replay.checks import Status
from streams.replay.cutoff import Cutoff
from streams.replay.errors import NoSuchExecution, TamperedLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from tests.support.replay.benches import SCOPE, ReplayBench, read, root_of, write

ID = 1000


@pytest.fixture
def bench() -> ReplayBench:
    return ReplayBench()


@pytest.fixture
async def bundle(bench: ReplayBench, tmp_path: Path) -> Path:
    await bench.with_payloads(ID)
    await bench.export(ID, file := tmp_path / "one.bundle")
    return file


def failures(report: BundleReport) -> list[str]:
    return [f"{one.first}: {one.detail}" for one in report.checks if one.status is Status.FAILED]


async def test_a_bundle_is_proven_from_its_file_alone(bundle: Path) -> None:
    report = await verify_bundle(bundle)
    assert report.is_proven
    assert [(one.name, one.status) for one in report.checks] == [
        (name, Status.PASSED) for name in ("file", "events", "fold", "payloads")
    ]
    assert report.manifest is not None
    assert (report.manifest.executions[0].seq, report.manifest.payloads.count) == (19, 2)


async def test_the_same_execution_gives_the_same_file(bench: ReplayBench, tmp_path: Path) -> None:
    await bench.with_payloads(ID)
    for name in ("one", "two"):
        await bench.export(ID, tmp_path / name)
    assert read(tmp_path / "one") == read(tmp_path / "two")


async def test_any_tar_program_reads_it_front_to_back(bundle: Path) -> None:
    with tarfile.open(bundle, "r|") as tar:
        names = [member.name for member in tar]
    assert names[:3] == [MANIFEST, "schemas/100001.avsc", f"events/{ID}/000000000001.events"]
    assert [name.partition("/")[0] for name in names[3:]] == ["payloads", "payloads", DIGESTS]


async def test_a_changed_byte_anywhere_is_found_and_named(bundle: Path) -> None:
    whole = read(bundle)
    ends = [0, 1, len(whole) - 1, len(whole) - len(END), len(whole) - len(END) - 1]
    places = random.Random(14).sample(range(len(whole)), 100)
    for place in [*ends, *places]:
        changed = bytearray(whole)
        changed[place] ^= 0x20
        write(bundle, changed)
        try:
            report = await verify_bundle(bundle)
        except (NotABundle, NewerBundle) as error:
            pytest.fail(f"byte {place}: {error}")
        (found,) = failures(report)
        assert not found.startswith("None"), (place, found)


async def test_a_changed_event_is_named(bundle: Path) -> None:
    whole = read(bundle)
    at = whole.index(b"story/7")
    write(bundle, whole[:at] + b"Story" + whole[at + 5 :])
    (found,) = failures(await verify_bundle(bundle))
    assert found.startswith(f"events/{ID}/000000000001.events, event 7: ")


async def test_a_file_cut_anywhere_is_not_proven(bundle: Path) -> None:
    whole = read(bundle)
    for length in [600, len(whole) // 2, len(whole) - 1, len(whole) - len(END)]:
        write(bundle, whole[:length])
        assert "the file ends here" in str(failures(await verify_bundle(bundle)))
    write(bundle, whole + b"\0" * 512)
    assert "other bytes follow" in str(failures(await verify_bundle(bundle)))


async def test_other_files_are_not_bundles(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for data, why in (
        (b"", "it is empty"),
        (b"x" * 2000, "not begin with an entry"),
        (entry("notes.txt", b"x") + END, "its first entry is not"),
        (entry(MANIFEST, sealed_json({"format": "x"})) + END, "has another format"),
    ):
        write(file, data)
        with pytest.raises(NotABundle, match=why):
            await verify_bundle(file)
    write(file, entry(MANIFEST, sealed_json({"format": FORMAT, "version": 2})) + END)
    with pytest.raises(NewerBundle, match="upgrade"):
        await verify_bundle(file)


async def test_a_forged_event_with_new_digests_breaks_the_chain(
    bench: ReplayBench, tmp_path: Path
) -> None:
    await bench.with_payloads(ID)
    stored = bench.stored.stored[root_of(ID)]

    def forge() -> None:
        stored[6] = stored[6]._replace(envelope=stored[7].envelope)

    await bench.export(ID, file := tmp_path / "bundle", before_writing=forge)
    (found,) = failures(await verify_bundle(file))
    assert found == f"execution/{ID} seq 7: it does not match its checksum"


async def test_a_head_that_the_reader_does_not_know_is_refused(bundle: Path) -> None:
    with open_bundle(bundle) as opened:
        chain = opened.manifest.executions[0].chain
    assert (await verify_bundle(bundle, chain=chain)).is_proven
    assert "not ffff" in str(failures(await verify_bundle(bundle, chain="ff" * 32)))


async def test_a_bundle_of_other_code_is_proven_but_for_its_fold(
    bench: ReplayBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.with_payloads(ID)
    with monkeypatch.context() as patched:
        patched.setattr("streams.replay.bundle.export.code_digest", lambda: "ab" * 32)
        await bench.export(ID, file := tmp_path / "same")
        patched.setattr("streams.replay.bundle.export.checksums", lambda _: {"all": "00"})
        await bench.export(ID, other := tmp_path / "other")
    assert snapshots.code_digest() != "ab" * 32

    same, differs = await verify_bundle(file), await verify_bundle(other)

    folds = [one for report in (same, differs) for one in report.checks if one.name == "fold"]
    assert same.is_proven
    assert differs.is_proven
    assert [one.status for one in folds] == [Status.PASSED, Status.NOT_APPLICABLE]
    assert "made by other code (abababababab), this one differs: execution 1000" in folds[1].detail


async def test_a_bundle_without_payloads_says_so(bench: ReplayBench, tmp_path: Path) -> None:
    await bench.with_payloads(ID)
    bench.payloads.objects.clear()
    await bench.export(ID, file := tmp_path / "bundle", payloads=False)
    report = await verify_bundle(file)
    assert report.is_proven
    assert report.checks[-1].detail == "exported without payloads"


async def test_a_missing_payload_is_named_with_its_event(
    bench: ReplayBench, tmp_path: Path
) -> None:
    await bench.with_payloads(ID)
    bench.payloads.objects.clear()
    with pytest.raises(PayloadNotStored, match=r"event (9|13) \(\d+\) of execution 1000"):
        await bench.export(ID, tmp_path / "bundle")


async def test_children_are_in_the_bundle_of_their_parent(
    bench: ReplayBench, tmp_path: Path
) -> None:
    for execution_id in (ID, 2000, 3000):
        await bench.with_payloads(execution_id)
    bench.children = {ID: [2000], 2000: [3000]}
    await bench.export(ID, file := tmp_path / "bundle", children=True)
    report = await verify_bundle(file)
    assert report.is_proven
    assert report.manifest is not None
    assert [one.execution_id for one in report.manifest.executions] == [ID, 2000, 3000]


async def test_a_tampered_log_and_a_foreign_execution_are_not_exported(
    bench: ReplayBench, tmp_path: Path
) -> None:
    await bench.with_payloads(ID)
    stored = bench.stored.stored[root_of(ID)]
    with pytest.raises(NoSuchExecution):
        await bench.export(7, tmp_path / "bundle")
    stored[3] = stored[3]._replace(envelope=b"\1")
    with pytest.raises(TamperedLog, match="seq 4"):
        await bench.export(ID, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


async def test_every_state_in_a_bundle_equals_that_of_the_log(
    bench: ReplayBench, bundle: Path
) -> None:
    with open_bundle(bundle) as opened:
        codec = opened.codec()
        log = BundleLog(opened, codec)
        replay = Replay(log, VerifiedLog(log, codec), SystemClock())
        for seq in range(1, 20):
            cutoff = Cutoff(seq=seq)
            here = await replay.state(ID, SCOPE, cutoff)
            assert here == await bench.replay.state(ID, SCOPE, cutoff)


async def test_a_lost_payload_is_named(bundle: Path) -> None:
    whole = read(bundle)
    with tarfile.open(bundle) as tar:
        member = next(one for one in tar if one.name.startswith("payloads/"))
    begin, end = member.offset, member.offset_data + 512
    write(bundle, whole[:begin] + whole[end:])
    (found,) = failures(await verify_bundle(bundle))
    assert found.startswith(f"{member.name}: missing; event ")
