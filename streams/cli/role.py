"""`streams run`: one role in the foreground."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import click
import orjson

from streams.cli.imports import importing
from streams.cli.options import config_option, data_option
from streams.cli.output import print_ineffective
from streams.errors import StreamsError
from streams.redact import Formatter
from streams.segments import is_pool_name
from streams.settings import Settings


@click.command()
@click.argument("role")
@click.option("--pool", metavar="NAME", help="Run a worker of this pool.  [default: default]")
@data_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def run(role: str, pool: str | None, data: Path | None, file: Path | None, as_json: bool) -> None:
    """Run one ROLE (planner, worker, projector, trigger, api, collector, facts) until stopped.

    NOETL_SHARD_ID names this process: unique within its role, and stable across restarts.
    `streams up` runs the roles by itself. If `payload_store.cache.tier_15_carrier` is memfd, each
    node also needs one process of `shm-broker`, which owns its sealed shared memory.

    \b
    Examples:
      NOETL_SHARD_ID=worker-7 streams run worker
      NOETL_SHARD_ID=worker-gpu-0 streams run worker --pool gpu
      NOETL_SHARD_ID=shm-broker-0 streams run shm-broker
    """
    with importing():
        from streams.data_folder import layout_of
        from streams.roles.allocator import collect_rarely, keep_small
        from streams.roles.start import find_role, run_role

        keep_small()
        collect_rarely()
        body = find_role(role)
        settings = _with_pool(_loaded(file, data), role, pool)
    _log_to_standard_error()
    name = settings.runtime.shard_id

    def report(state: str) -> None:
        fields = {"role": role, "name": name, "state": state}
        click.echo(orjson.dumps(fields).decode() if as_json else " ".join(fields.values()))

    def fail(error: Exception) -> NoReturn:
        is_bug = not isinstance(error, StreamsError)
        logging.getLogger("streams").exception("%s %s exits%s", role, name, ": bug" * is_bug)
        _exit(error.exit_code if isinstance(error, StreamsError) else 1)

    asyncio.run(run_role(body, settings, layout_of(data).data, lambda: report("ready"), fail))
    report("ended")


def _exit(code: int) -> NoReturn:
    """End the process at once: after a failure nobody stops the threads of Faust."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _loaded(file: Path | None, data: Path | None) -> Settings:
    """Return the settings, and warn of those without effect."""
    from streams.local.settings import load_settings

    loaded = load_settings(file, data)
    print_ineffective(loaded)
    return loaded.settings


def _with_pool(settings: Settings, role: str, pool: str | None) -> Settings:
    """Return the settings of a worker of `pool`, if one is given."""
    if pool is None:
        return settings
    if role != "worker":
        raise click.BadParameter(f"only a worker has a pool, not {role}", param_hint="--pool")
    if not is_pool_name(pool):
        what = (
            f"{pool!r} is not a valid name; it is part of a topic's: letters, digits, `.`, `_`, `-`"
        )
        raise click.BadParameter(what, param_hint="--pool")
    runtime = settings.runtime.model_copy(update={"pool": pool})
    return settings.model_copy(update={"runtime": runtime})


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for chatty in ("aiokafka", "mode", "faust", "botocore", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
