"""The schema registry of the profile `full`: Apicurio with file storage."""

from __future__ import annotations

from streams.data_folder import Layout
from streams.local.jars import Jars
from streams.local.java import Java
from streams.local.jvm import JAVA_ENVIRONMENT
from streams.local.ports import HOST
from streams.local.probe import http_answers
from streams.local.service import Service
from streams.local.state import RegistryAddress

_ARTIFACT = "apicurio-registry-app"


def registry_address(port: int) -> RegistryAddress:
    """Return the registry's URLs for both of its protocols."""
    base = f"http://{HOST}:{port}/apis"
    return RegistryAddress(f"{base}/ccompat/v7", f"{base}/registry/v2")


def registry_service(layout: Layout, java: Java, jars: Jars, port: int) -> Service:
    """Return the registry's service; its H2 database is in a file instead of memory."""
    layout.registry.mkdir(mode=0o700, exist_ok=True)
    version = jars.version(_ARTIFACT)
    program = jars.unpacked(_ARTIFACT) / f"{_ARTIFACT}-{version}-runner.jar"
    url = f"http://{HOST}:{port}"
    return Service(
        name="registry",
        version=version,
        address=url,
        command=(
            str(java.program),
            "-Xmx384m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-jar",
            str(program),
        ),
        environment={
            **JAVA_ENVIRONMENT,
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(port),
            "QUARKUS_DATASOURCE_JDBC_INITIAL_SIZE": "2",
            "QUARKUS_DATASOURCE_JDBC_MIN_SIZE": "2",
            "REGISTRY_DATASOURCE_URL": f"jdbc:h2:file:{layout.registry / 'schemas'}",
        },
        log=layout.log("registry"),
        ready=http_answers(f"{url}/health/ready"),
        start_seconds=180.0,
    )
