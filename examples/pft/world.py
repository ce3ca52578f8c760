"""What the mock server holds: facilities, patients, their pages, and which requests fail.

Everything follows from the numbers given, so that nothing is stored: whoever knows a path
knows its rows. Half of the text values look like something else, to show that they arrive
as the text they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

PAGES = {"assessments": 4, "conditions": 3, "medications": 3, "vital_signs": 1, "demographics": 1}
KINDS = (*PAGES, "mds_details")
VALUES = ("12345", "stable", "1e5", "mild", "None", "improved", "true", "severe", "", "007")
PATIENT = b"/facilities/%d/patients/%d/%s?page=%d"
DETAIL = b"/mds/%d"
ROW = (
    b'{"row_key":"%s/%d/%d/%d/%d","facility_id":%d,"patient_id":%d,"page":%d,"value":"%s",'
    b'"score":%d.5,"recorded_on":"2026-%02d-%02d","mds_id":%s}'
)
PAGE = b'{"data":[%s],"paging":{"page":%d,"hasMore":%s}}'
# A facility's patients get keys of their own, far apart enough for any number of patients.
KEYS_PER_FACILITY = 1_000_000

Fault = Literal["busy", "silent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The facilities and patients there are, and how many rows a page of theirs has.

    Every `mds_every`-th patient of a facility has an MDS detail behind each page of
    assessments; 0: nobody has.
    """

    facilities: int = 10
    patients: int = 200
    rows_per_page: int = 1
    mds_every: int = 10

    def answer(self, path: bytes) -> bytes | None:
        """Return the body of what is at `path`, or None when nothing is."""
        place = self.place(path)
        return None if place is None else self.body(*place)

    def place(self, path: bytes) -> tuple[str, int, int, int] | None:
        """Read a path: kind, facility, patient and page; None when nothing is there."""
        try:
            parts = path.split(b"/")
            if parts[1] == b"mds":
                return self._detail(int(parts[2]))
            kind, _, page = parts[5].partition(b"?page=")
            place = kind.decode(), int(parts[2]), int(parts[4]), int(page or 1)
        except (IndexError, ValueError):
            return None
        return place if self._has(*place) else None

    def body(self, kind: str, facility: int, patient: int, page: int) -> bytes:
        """Return a page of a patient's records, or the one record of a detail."""
        if kind == "mds_details":
            return b'{"data":%s}' % self._row(kind, facility, patient, page, 0)
        numbers = range(self.rows_per_page)
        rows = b",".join(self._row(kind, facility, patient, page, number) for number in numbers)
        return PAGE % (rows, page, b"true" if page < PAGES[kind] else b"false")

    def keys(self, kind: str, facility: int, patient: int, page: int) -> list[tuple[str, str]]:
        """Name the rows of a page, each with its text value."""
        count = 1 if kind == "mds_details" else self.rows_per_page
        return [
            (f"{kind}/{facility}/{patient}/{page}/{n}", _value(facility, patient, page, n))
            for n in range(count)
        ]

    def paths(self, kind: str) -> Iterator[bytes]:
        """Return every path of a kind that a complete run asks for."""
        for facility in range(1, self.facilities + 1):
            for patient in range(1, self.patients + 1):
                if kind != "mds_details":
                    for page in range(1, PAGES[kind] + 1):
                        yield PATIENT % (facility, patient, kind.encode(), page)
                elif self._has_details(patient):
                    for page in range(1, PAGES["assessments"] + 1):
                        yield DETAIL % mds_id(facility, patient, page)

    def expected(self) -> dict[str, dict[str, int]]:
        """Return how many requests a complete run makes, and how many rows it gets, by kind."""
        people = self.facilities * self.patients
        sick = self.facilities * (self.patients // self.mds_every) if self.mds_every else 0
        requests = {kind: people * pages for kind, pages in PAGES.items()}
        rows = {kind: count * self.rows_per_page for kind, count in requests.items()}
        details = {"mds_details": sick * PAGES["assessments"]}
        return {"requests": requests | details, "rows": rows | details}

    def _has(self, kind: str, facility: int, patient: int, page: int) -> bool:
        return (
            kind in PAGES
            and 1 <= facility <= self.facilities
            and 1 <= patient <= self.patients
            and 1 <= page <= PAGES[kind]
        )

    def _has_details(self, patient: int) -> bool:
        return self.mds_every > 0 and patient % self.mds_every == 0

    def _detail(self, number: int) -> tuple[str, int, int, int] | None:
        key, page = divmod(number, 10)
        facility, patient = divmod(key, KEYS_PER_FACILITY)
        if not self._has("assessments", facility, patient, page) or not self._has_details(patient):
            return None
        return "mds_details", facility, patient, page

    def _row(self, kind: str, facility: int, patient: int, page: int, number: int) -> bytes:
        is_listed = kind == "mds_details" or (
            kind == "assessments" and number == 0 and self._has_details(patient)
        )
        detail = b"%d" % mds_id(facility, patient, page) if is_listed else b"null"
        value = _value(facility, patient, page, number).encode()
        name = kind.encode()
        who = (facility, patient, page)
        day = (patient % 12 + 1, page % 28 + 1)
        return ROW % (name, *who, number, *who, value, patient % 100, *day, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Which requests fail: settled by path and try, so that the same one fails in every run."""

    busy_rate: float = 0.0
    silent_rate: float = 0.0
    seed: int = 1

    def of(self, path: bytes, attempt: int) -> Fault | None:
        """Say what becomes of the `attempt`-th request for `path`; None: it is answered."""
        said = blake2b(b"%d %s %d" % (self.seed, path, attempt), digest_size=8).digest()
        drawn = int.from_bytes(said, "big") / 2**64
        if drawn < self.busy_rate:
            return "busy"
        return "silent" if drawn < self.busy_rate + self.silent_rate else None


def mds_id(facility: int, patient: int, page: int) -> int:
    """Return the id of the MDS detail that a page of assessments lists."""
    return (facility * KEYS_PER_FACILITY + patient) * 10 + page


def _value(facility: int, patient: int, page: int, number: int) -> str:
    return VALUES[(facility + 3 * patient + page + number) % len(VALUES)]
