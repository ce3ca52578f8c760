"""The page about events says what the catalogue says."""

from pathlib import Path

from streams.events.catalogue import catalogue
from streams.events.document import document

PAGE = Path(__file__).resolve().parents[3] / "docs" / "events.md"


def test_the_page_is_what_streams_events_document_would_write() -> None:
    assert PAGE.read_text("utf-8") == document(catalogue())


def test_every_event_type_is_on_the_page() -> None:
    page = document(catalogue())

    assert [name for name in catalogue().types if f"`{name}` v" not in page] == []
