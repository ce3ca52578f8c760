import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streams.local.errors import JarsUnavailable
from streams.local.fetch import FetchError
from streams.local.jars import cache_folder, provide_jars
from streams.local.pom import POM, read_coordinates


class CountingFetcher:
    """Brings empty files and counts how often it was asked."""

    name = "test"

    def __init__(self, *, missing: str = "", error: str = "") -> None:
        self.calls, self._missing, self._error = 0, missing, error

    def fetch(self, profile, coordinates, target: Path) -> None:
        self.calls += 1
        if self._error:
            raise FetchError(self._error)
        for coordinate in coordinates:
            if coordinate.artifact == self._missing:
                continue
            path = target / coordinate.file_name
            if coordinate.type == "tar.gz":
                with tarfile.open(path, "w:gz"):
                    pass
            else:
                path.touch()


def provide(cache: Path, fetcher: CountingFetcher, profile: str = "core"):
    return provide_jars(profile, cache=cache, say=lambda _: None, fetcher=fetcher)


def test_jars_are_fetched_once(tmp_path):
    fetcher = CountingFetcher()
    first, second = provide(tmp_path, fetcher), provide(tmp_path, fetcher)
    assert fetcher.calls == 1
    assert first == second
    assert (first.lib / "kafka_2.13-4.3.1.jar").exists()


def test_a_pom_of_ones_own_has_jars_of_its_own(tmp_path):
    pom = tmp_path / "pom.xml"
    pom.write_text(POM.read_text().replace("<id>core</id>", "<id>mine</id>"))
    fetcher = CountingFetcher()
    found = provide_jars("mine", cache=tmp_path, say=print, fetcher=fetcher, pom=pom)
    assert found.folder.name.startswith("mine-")
    assert provide(tmp_path, fetcher).folder != found.folder


def test_processes_that_want_the_jars_at_once_fetch_them_once(tmp_path):
    fetcher = CountingFetcher()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: provide(tmp_path, fetcher), range(8)))
    assert fetcher.calls == 1


def test_a_fetch_that_failed_leaves_nothing_that_looks_complete(tmp_path):
    with pytest.raises(JarsUnavailable, match=r"no route to host.*Check the network"):
        provide(tmp_path, CountingFetcher(error="no route to host"))
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]
    assert provide(tmp_path, CountingFetcher()).lib.is_dir()


def test_a_file_that_did_not_arrive_is_named(tmp_path):
    with pytest.raises(JarsUnavailable, match=r"kafka-clients-4\.3\.1\.jar missing"):
        provide(tmp_path, CountingFetcher(missing="kafka-clients"))


def test_the_converter_without_a_service_file_gets_one(tmp_path):
    lib = provide(tmp_path, CountingFetcher(), "full").lib
    with zipfile.ZipFile(lib / "apicurio-registry-utils-converter-services.jar") as jar:
        listed = jar.read("META-INF/services/org.apache.kafka.connect.storage.Converter")
    assert b"io.apicurio.registry.utils.converter.AvroConverter" in listed


def test_the_cache_can_be_moved_by_the_environment(tmp_path):
    assert cache_folder({"STREAMS_CACHE": str(tmp_path)}) == tmp_path.resolve()


def test_the_pom_pins_the_versions_the_design_names():
    core = {c.artifact: c for c in read_coordinates(POM.read_text(), "core")}
    full = {c.artifact: c for c in read_coordinates(POM.read_text(), "full")}
    assert core["kafka_2.13"].version == core["connect-runtime"].version == "4.3.1"
    debezium = core["debezium-connector-postgres"]
    assert debezium.file_name == "debezium-connector-postgres-3.6.1.Final-plugin.tar.gz"
    assert full["debezium-connector-jdbc"].version == "3.6.0.Final"
    assert full["apicurio-registry-app"].version == "2.6.13.Final"
    assert "log4j-slf4j-impl" in core


def test_nothing_in_the_pom_is_left_to_a_resolver():
    root = ElementTree.fromstring(POM.read_text())
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    entries = root.findall(".//m:dependency", space)
    open_ended = [
        entry.findtext("m:artifactId", namespaces=space)
        for entry in entries
        if entry.findtext("m:exclusions/m:exclusion/m:artifactId", namespaces=space) != "*"
    ]
    assert len(entries) > 100
    assert open_ended == []
