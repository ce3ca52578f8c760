"""The fields of a credential, as `streams credential set` reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from streams.errors import Refused


def read_fields(kind: str, from_file: Path | None, pairs: tuple[str, ...]) -> dict[str, str]:
    """Read the fields from the file, else from K=V pairs, else from standard input."""
    from streams.credential.fields import check_fields, fields_of

    if from_file is not None and pairs:
        raise click.UsageError("give --from-file or --set, not both")
    if from_file is not None:
        try:
            return fields_of(from_file.read_text("utf-8"), kind, str(from_file))
        except (OSError, UnicodeDecodeError):
            raise Refused(f"{from_file}: cannot be read; save it as UTF-8 text") from None
    if pairs:
        click.echo("values of --set are visible to other users; prefer standard input", err=True)
        return check_fields(dict(_pair(pair) for pair in pairs))
    if sys.stdin.isatty():
        answer = click.prompt("connection string, token or JSON (not shown)", hide_input=True)
        return fields_of(str(answer), kind, "the input")
    try:
        text = click.get_binary_stream("stdin").read().decode()
    except UnicodeDecodeError:
        raise Refused(
            "standard input is not UTF-8 text; encode it, for example as base64"
        ) from None
    return fields_of(text, kind, "standard input")


def _pair(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not name or not equals:
        # Without the text: it may be a secret without its name.
        raise click.BadParameter("one of them is not K=V", param_hint="--set")
    return name, value
