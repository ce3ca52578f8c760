"""Options of commands that run playbooks in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from streams.cli.options import SECONDS, Command, options
from streams.cli.workload import named

if TYPE_CHECKING:
    from streams.events.model import Json
    from streams.trial.credentials import GivenCredentials
    from streams.trial.deployment import TrialOptions
    from streams.trial.playbooks import FilePlaybooks

BAD_INPUT = 2
PLAYBOOK_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

_options = options(
    click.option(
        "--with",
        "given",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        help="A file or folder with playbooks that this one calls.",
    ),
    click.option(
        "--credential",
        "credentials",
        multiple=True,
        metavar="NAME=FILE",
        help="A credential: a JSON object of fields in FILE.",
    ),
    click.option(
        "--sinks",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(".streams/sinks"),
        show_default=True,
        help="The folder for files that sinks write.",
    ),
    click.option(
        "--kafka",
        default="127.0.0.1:9092",
        show_default=True,
        metavar="HOST:PORT",
        help="The broker of tasks of kind kafka.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=SECONDS,
        default=300.0,
        show_default=True,
        help="Longest run in seconds.",
    ),
)


@dataclass(frozen=True, slots=True)
class TrialArguments:
    """The values of the options that both commands have."""

    given: tuple[Path, ...]
    credentials: tuple[str, ...]
    sinks: Path
    kafka: str
    timeout_s: float

    def options(self) -> TrialOptions:
        """Return what the runs may use; reads the credentials' files."""
        from streams.trial.deployment import TrialOptions

        return TrialOptions(
            credentials=_credentials_of(self.credentials),
            sink_folder=self.sinks,
            bootstrap=self.kafka,
        )


def trial_options(command: Command) -> Command:
    """Add the options to a command, which takes them as one argument, `trial`."""

    @wraps(command)
    def gathered(
        *,
        given: tuple[Path, ...],
        credentials: tuple[str, ...],
        sinks: Path,
        kafka: str,
        timeout_s: float,
        **others: object,
    ) -> object:
        trial = TrialArguments(given, credentials, sinks, kafka, timeout_s)
        return command(trial=trial, **others)

    return _options(gathered)


@contextmanager
def bad_input() -> Iterator[None]:
    """Print what is wrong with a playbook, and exit with 2."""
    from streams.playbook.errors import BadPlaybook

    try:
        yield
    except BadPlaybook as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(BAD_INPUT)


def _credentials_of(pairs: Sequence[str]) -> GivenCredentials:
    """Return the credentials of `--credential`."""
    from streams.trial.credentials import credential_of

    files = [named(pair, "--credential", "NAME=FILE") for pair in pairs]
    return {name: credential_of(name, json_of(Path(file), "--credential")) for name, file in files}


def json_of(file: Path, option: str) -> Json:
    """Return the JSON in a file that an option names; a secret may be in it."""
    try:
        value: Json = orjson.loads(file.read_bytes())
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint=option) from error
    except orjson.JSONDecodeError:
        raise click.BadParameter(f"{file} is not JSON", param_hint=option) from None
    return value


def print_warnings(file: Path, playbooks: FilePlaybooks) -> None:
    """Print the warnings about a playbook to standard error."""
    for problem in playbooks.problems:
        if problem.severity == "warning":
            click.echo(f"{file}:{problem}", err=True)
