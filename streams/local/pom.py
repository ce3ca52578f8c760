"""Parser of pom.xml: the files of each profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

POM = Path(__file__).with_name("pom.xml")
_NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One file in a Maven repository."""

    group: str
    artifact: str
    version: str
    type: str = "jar"
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """The file's name in the repository and in the cache."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.type}"


def read_coordinates(pom: str, profile: str) -> list[Coordinate]:
    """Return the files of one profile of a pom.

    Raises:
        KeyError: the pom has no such profile.
    """
    root = ElementTree.fromstring(pom)  # noqa: S314 - our own file
    for element in root.findall("m:profiles/m:profile", _NAMESPACE):
        if element.findtext("m:id", namespaces=_NAMESPACE) == profile:
            found = element.findall("m:dependencies/m:dependency", _NAMESPACE)
            return [_coordinate(dependency) for dependency in found]
    raise KeyError(profile)


def _coordinate(element: ElementTree.Element) -> Coordinate:
    def text(name: str, default: str = "") -> str:
        return element.findtext(f"m:{name}", default, _NAMESPACE).strip()

    return Coordinate(
        group=text("groupId"),
        artifact=text("artifactId"),
        version=text("version"),
        type=text("type", "jar"),
        classifier=text("classifier"),
    )


def version_of(coordinates: list[Coordinate], artifact: str) -> str:
    """Return the version under which `artifact` is listed."""
    return next(found.version for found in coordinates if found.artifact == artifact)
