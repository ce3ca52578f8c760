"""Values of a workload given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import orjson

if TYPE_CHECKING:
    from streams.events.model import Json

set_option = click.option(
    "--set", "texts", multiple=True, metavar="K=V", help="A value of the workload: text."
)
set_json_option = click.option(
    "--set-json", "values", multiple=True, metavar="K=JSON", help="A value of the workload: JSON."
)


def workload_of(texts: Sequence[str], values: Sequence[str]) -> dict[str, Json]:
    """Return the workload of `--set` and `--set-json`."""
    workload: dict[str, Json] = {}
    for option, given in (("--set", texts), ("--set-json", values)):
        for pair in given:
            name, text = named(pair, option, "K=V")
            if name in workload:
                raise click.BadParameter(f"{name!r} is given twice", param_hint=option)
            workload[name] = text if option == "--set" else _json(name, text)
    return workload


def named(pair: str, option: str, form: str) -> tuple[str, str]:
    """Return name and value of an option's `name=value`."""
    name, equals, text = pair.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{pair!r} is not {form}", param_hint=option)
    return name, text


def _json(name: str, text: str) -> Json:
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"{name}: {text!r} is not JSON: {error}") from error
    return value
