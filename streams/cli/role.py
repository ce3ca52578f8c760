"""`streams run`: one role in the foreground."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path

import click
import orjson

from streams.cli.options import config_option, data_option
from streams.cli.output import settings_of
from streams.errors import StreamsError
from streams.redact import Formatter


@click.command()
@click.argument("role")
@data_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def run(role: str, data: Path | None, file: Path | None, as_json: bool) -> None:
    """Run one ROLE (planner, worker, projector, trigger, api, collector) until it is stopped.

    NOETL_SHARD_ID names this process: unique within its role, and stable across restarts.
    `streams up` runs the roles by itself. If
    `payload_store.cache.tier_15_carrier` is memfd, each node also needs one process of the role
    `shm-broker`, which owns its sealed shared memory.

    \b
    Examples:
      NOETL_SHARD_ID=worker-7 streams run worker
      NOETL_SHARD_ID=shm-broker-0 streams run shm-broker
    """
    # Imports create no garbage: collecting would take a tenth of the startup time.
    gc.disable()
    from streams.data_folder import layout_of
    from streams.roles.allocator import keep_small
    from streams.roles.start import find_role, run_role

    keep_small()
    body = find_role(role)
    settings = settings_of(file, data)
    gc.freeze()
    gc.enable()
    _log_to_standard_error()
    name = settings.runtime.shard_id

    def report(state: str) -> None:
        fields = {"role": role, "name": name, "state": state}
        click.echo(orjson.dumps(fields).decode() if as_json else " ".join(fields.values()))

    try:
        asyncio.run(run_role(body, settings, layout_of(data).data, lambda: report("ready")))
    except StreamsError as error:
        logging.getLogger("streams").exception("%s %s exits", role, name)
        raise click.exceptions.Exit(error.exit_code) from error
    except Exception as error:
        logging.getLogger("streams").exception("%s %s exits: bug", role, name)
        raise click.exceptions.Exit(1) from error
    report("ended")


def _log_to_standard_error() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for chatty in ("aiokafka", "mode", "faust", "botocore", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
