"""Sinks are found in the templates, and compared with the log by tenant and type."""

from __future__ import annotations

import pytest

from streams.analytics.counts import analytics_dsn, differences
from streams.analytics.errors import NotASink, SinkDiffers
from streams.analytics.lag import SinkLag, SinkPartition
from streams.analytics.sinks import sinks
from streams.mirror.connectors import BadConnectorTemplate
from streams.settings import Settings

SETTINGS = Settings.model_validate(
    {
        "connect": {"secrets_dir": "/s"},
        "serialization": {"schema_registry": {"url": "http://r/apis/ccompat/v7"}},
        "payload_store": {"connection": {"endpoint": "http://s3"}},
        "analytics": {"password": "p@/", "port": 6000},
        "event_store": {"canonical_connection": {"host": "db", "ssl_mode": "require"}},
    }
)


def test_both_sinks_read_every_event_topic_and_nothing_else() -> None:
    database, lake = sinks(SETTINGS)
    assert (database.name, lake.name) == ("noetl-analytics-events", "noetl-lake-events")
    assert database.topics == lake.topics
    assert "noetl.events.execution" in database.topics
    assert all(topic.startswith("noetl.events.") for topic in database.topics)
    assert database.group == "connect-noetl-analytics-events"
    assert (database.is_lake, lake.control) == (False, ("noetl.lake.control",))
    assert database.dead_letters != lake.dead_letters


def test_a_sink_reads_committed_records_only() -> None:
    for sink in sinks(SETTINGS):
        assert sink.connector.config["consumer.override.isolation.level"] == "read_committed"


def test_both_sinks_write_the_same_columns() -> None:
    database, lake = (
        {key: value for key, value in sink.connector.config.items() if key.startswith("transforms")}
        for sink in sinks(SETTINGS)
    )
    assert database == lake


def test_the_mirror_is_not_a_sink() -> None:
    with pytest.raises(NotASink, match="noetl-mirror is not a sink; the sinks are"):
        sinks(SETTINGS, ["noetl-mirror"])


def test_a_registry_that_the_converter_cannot_ask_is_refused() -> None:
    other = SETTINGS.model_copy(update={"serialization": Settings().serialization})
    with pytest.raises(BadConnectorTemplate, match=r"schema_registry\.url is not Apicurio's"):
        sinks(other)


def test_the_analytics_database_is_on_the_logs_server_unless_another_is_named() -> None:
    assert analytics_dsn(SETTINGS) == (
        "postgresql://noetl_analytics:p%40%2F@db:6000/analytics?sslmode=require"
    )


def test_lag_counts_from_the_first_offset_that_still_exists() -> None:
    partitions = (
        SinkPartition("a", 0, first=0, end=10, committed=4),
        SinkPartition("a", 1, first=0, end=3, committed=None),
        SinkPartition("b", 0, first=7, end=9, committed=2),
    )
    lag = SinkLag("s", partitions, dead_letters=0)
    assert [one.behind for one in partitions] == [6, 3, 2]
    assert (lag.behind, lag.trimmed) == (11, ("b",))


def test_each_tenant_and_type_that_differs_is_named() -> None:
    log = {("acme", "frame.committed"): 2, ("acme", "stage.closed"): 1}
    sink = {("acme", "frame.committed"): 3, ("acme", "stage.closed"): 1, ("b", "x.y"): 1}
    found = differences(log, sink)
    assert found == [
        "acme frame.committed: 2 in the log, 3 in the sink",
        "b x.y: 0 in the log, 1 in the sink",
    ]
    assert differences(log, log) == []
    assert "`streams connectors rebuild s`" in str(SinkDiffers("s", found))
