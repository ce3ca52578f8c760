"""A Neo4j server that a test has for itself."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from neo4j import GraphDatabase

from streams.local.jars import cache_folder, provide_jars
from streams.local.java import find_java
from tests.support.servers.programs import serving

POM = Path(__file__).with_name("neo4j.pom.xml")
MAIN = "org.neo4j.server.CommunityEntryPoint"
PASSWORD = "a word of this test"
CONFIG = """
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=16m
dbms.usage_report.enabled=false
"""


@asynccontextmanager
async def neo4j_server(home: Path) -> AsyncIterator[dict[str, str]]:
    """Run a server on this machine's loopback; yield the fields of a credential for it."""
    jars = provide_jars("neo4j", cache=cache_folder(), say=print, pom=POM)
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "neo4j.conf").write_text(CONFIG.format(port=port))
    command = [find_java().program, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", f"{jars.lib}/*", MAIN, f"--home-dir={home}", f"--config-dir={home}/conf"]
    async with serving([*command, "--console-mode"], r"Started\."):
        url = f"bolt://127.0.0.1:{port}"
        # The first password can only be changed.
        with GraphDatabase.driver(url, auth=("neo4j", "neo4j")) as driver:
            change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
            driver.execute_query(change, password=PASSWORD, database_="system")
        yield {"url": url, "user": "neo4j", "password": PASSWORD}
