"""Request bodies, for validation and for the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import orjson
from aiohttp import web
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from streams.api.errors import BadRequest
from streams.events.limits import MAX_KEY_CHARS
from streams.events.model import PayloadRef

if TYPE_CHECKING:
    from streams.events.model import Json
else:
    # orjson parsed it: validating author data again, level by level, would only cost time.
    Json = object


def _in_64_bits(text: str) -> str:
    if int(text) >= 2**63:
        raise ValueError("is not a valid id; ids have 64 bits")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_without_nul)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Few = Annotated[int, Field(ge=1, le=100)]
Id = Annotated[str, Field(pattern=r"^[0-9]{1,19}$"), AfterValidator(_in_64_bits)]
Body = TypeVar("Body", bound="Sent")


class Sent(BaseModel):
    """A request body; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(Sent):
    """Start a playbook. With a `key`, a repeated request starts nothing new."""

    path: Name
    version: Annotated[int, Field(ge=1)] | None = None
    workload: dict[str, Json] = {}
    key: Name | None = None
    reply_to: Name | None = None
    correlation_id: Name | None = None


class Cancel(Sent):
    """End an execution."""

    by: Name = "api"
    reason: str | None = None


class Suspend(Sent):
    """Dispatch nothing new of an execution; the reason is its `error` until it is resumed."""

    by: Name = "api"
    reason: Annotated[str, Field(min_length=1, max_length=MAX_KEY_CHARS)]


class Resume(Sent):
    """Resume a suspended execution."""

    by: Name = "api"


class Fork(Sent):
    """Start an execution from a past state. With a `key`, a repeated request starts nothing new."""

    position: int
    set: dict[Name, Json] = {}
    by: Name = "api"
    key: Name | None = None
    dry_run: bool = False
    repeat_effects: bool = False
    """Side effects that would be repeated are listed and refused unless this is true."""


class Register(Sent):
    """Register a playbook; unchanged content is the same version."""

    content: Annotated[str, Field(min_length=1)]
    path: Name | None = None


class Reference(Sent):
    """A stored payload, as POST /api/payloads returns it; `url` is for reading only."""

    uri: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    media_type: Name
    byte_length: Count
    row_count: Count | None = None
    schema_digest: Name | None = None
    compression: Name | None = None
    url: str | None = None

    def ref(self) -> PayloadRef:
        """Return it as the value that events carry."""
        return PayloadRef(**self.model_dump(exclude={"url"}))


class ClaimFrames(Sent):
    """Claim frames; the worker then holds at most `max_inflight` of this stage."""

    worker_id: Name
    want: Few = 1
    max_inflight: Few = 100


class ClaimCommands(Sent):
    """Claim commands of a pool; without `tools`, of any tool."""

    worker_id: Name
    pool: Name = "default"
    want: Few = 1
    tools: tuple[Name, ...] = ()


class RenewLease(Sent):
    """Renew the lease on a command."""

    worker_id: Name
    attempt: Count | None = None


class Heartbeat(RenewLease):
    """Renew the lease on a frame.

    With a cursor and durable output it is a checkpoint: the output's rows, those since the last
    checkpoint, are done, and the frame continues at the cursor. A cursor alone is not stored.
    """

    cursor: dict[str, Json] | None = None
    output_ref: Reference | None = None
    row_count: Count | None = None
    failed_rows: Count = 0
    errors: tuple[dict[str, Json], ...] = ()
    ctx: dict[str, Json] | None = None


class CommitFrame(Sent):
    """Report the outcome of a frame, of its rows since the last checkpoint if there was one.

    `row_count` includes the rows that failed.
    """

    worker_id: Name
    attempt: Count | None = None
    cursor: dict[str, Json] | None = None
    output_ref: Reference | None = None
    row_count: Count = 0
    failed_rows: Count = 0
    status: Literal["success", "partial", "failed"] = "success"
    continues: bool = False
    exhausted: bool = False
    errors: tuple[dict[str, Json], ...] = ()
    error: str | None = None
    ctx: dict[str, Json] | None = None

    @model_validator(mode="after")
    def _counts_agree(self) -> CommitFrame:
        if self.failed_rows > self.row_count:
            raise ValueError("failed_rows is more than row_count, which includes them")
        if self.status == "partial" and not self.failed_rows:
            raise ValueError("status is partial, but failed_rows is 0: report how many failed")
        return self


class CompleteCommand(Sent):
    """Report the outcome of a command; data of megabytes goes to POST /api/payloads first."""

    worker_id: Name
    attempt: Count | None = None
    status: Literal["success", "error"] = "success"
    data: Json = None
    meta: dict[str, Json] = {}
    output_ref: Reference | None = None
    error: str | None = None
    ctx: dict[str, Json] | None = None


class SetCredential(Sent):
    """Store a credential's fields, such as {"dsn": ...}; they are encrypted and never returned."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kind: Name
    fields: dict[str, str | int | float]


class ResolveCredential(Sent):
    """Ask for a secret, as the worker that holds a frame or command whose step names it."""

    execution_id: Id
    entity: Literal["frame", "command"]
    entity_id: Id
    attempt: Annotated[int, Field(ge=0, lt=2**31)]
    worker_id: Name
    name: Name


async def read(request: web.Request, kind: type[Body]) -> Body:
    """Return the request's body.

    Raises:
        BadRequest: it is not JSON, or invalid; all problems are listed.
    """
    raw = await request.read()
    try:
        return kind.model_validate(orjson.loads(raw) if raw else {})
    except orjson.JSONDecodeError as error:
        raise BadRequest((f"the body is not JSON: {error}",)) from error
    except ValidationError as error:
        raise BadRequest(tuple(_message(one) for one in error.errors())) from error


def _message(problem: ErrorDetails) -> str:
    where = ".".join(str(part) for part in problem["loc"]) or "the body"
    return f"{where}: {problem['msg']}"
