"""Reads the configuration of `artifact`: content types, codecs, data, references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import orjson

from streams.events.model import Json, PayloadRef
from streams.payload.content import check_owner
from streams.payload.media import is_json, kind_of
from streams.payload.port import ARROW, Compression, Scope
from streams.playbook.result_policy import CODECS
from streams.results.reference import is_reference
from streams.worker.errors import BadConfig
from streams.worker.port import Config
from streams.worker.tools.download import OCTETS

_DIGITS = re.compile(r"[0-9]{1,19}")
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(;[ -~]{1,50})?", re.ASCII)


def content_type_of(given: Mapping[str, Json]) -> str | None:
    """Return the content type that the author gives, if any.

    Raises:
        BadConfig: it is none.
    """
    kind = given.get("content_type")
    if kind is None or (isinstance(kind, str) and _MEDIA_TYPE.fullmatch(kind)):
        return kind
    raise BadConfig(f"'content_type' is {kind!r}, not a media type such as text/csv")


def plain_type(kind: str) -> str:
    """Return what a server says about its answer, where that can stand in a reference."""
    return kind if _MEDIA_TYPE.fullmatch(kind) else OCTETS


def codec_of(given: Mapping[str, Json]) -> Compression | None:
    """Return how the author wants it packed, if that is said.

    Raises:
        BadConfig: no such way is known.
    """
    codec = given.get("compression")
    if codec is not None and codec not in CODECS:
        raise BadConfig(f"'compression' is {codec!r}, none of {', '.join(CODECS)}")
    return cast("Compression | None", codec)


def encoded(value: Json, media_type: str) -> bytes:
    """Return what is put, as its media type will be read: text as it is, anything else as JSON.

    Raises:
        BadConfig: it is neither, or not what the media type says.
    """
    if media_type == ARROW:
        raise BadConfig("'data' is not an Arrow stream; put one from a 'url' or a 'file'")
    if not isinstance(value, str):
        text = _json_text(value)
    elif is_json(media_type):
        text = _checked_json(value, media_type)
    else:
        text = value
    # JSON is read as UTF-8, whatever its parameters say.
    charset = "utf-8" if is_json(media_type) else kind_of(media_type)[1]
    try:
        return text.encode(charset)
    except LookupError as error:
        what = f"'content_type' names the charset {charset!r}, which is unknown"
        raise BadConfig(f"{what}; write utf-8") from error
    except ValueError as error:
        raise BadConfig(f"'data' cannot be written in {charset}: {error}") from error


def _json_text(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise BadConfig(f"'data' is not JSON: {error}; give text for what is not") from error


def _checked_json(text: str, media_type: str) -> str:
    """Return text that is put as JSON, which nobody could get if it were none."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        why = f"'data' is text that is not JSON, and 'content_type' is {media_type}: {error}"
        raise BadConfig(f"{why}; write it with `| tojson`, or leave 'content_type' out") from error
    return text


def execution_id_of(value: Json) -> int:
    """Return an execution's number, which the log keeps in 64 bits.

    Raises:
        BadConfig: it is none.
    """
    text = str(value)
    if _DIGITS.fullmatch(text) and (number := int(text)) < 2**63:
        return number
    raise BadConfig(f"'execution_id' is {text[:80]!r}, not the number of an execution")


def with_args(config: Config) -> dict[str, Json]:
    """Return a task's keys, with those below `args`."""
    inner = config.get("args")
    return {**(inner if isinstance(inner, dict) else {}), **config}


def find_reference(ref: Json) -> Json:
    """Return the name, or the payload's reference, in whatever tells of a result.

    That is a name, either kind of reference, what a put answered, or all that templates see of
    a task.
    """
    if not isinstance(ref, dict):
        return ref
    if is_reference(ref):
        return ref.get("ref")
    if "_ref" in ref or "uri" in ref:
        return ref.get("_ref", ref)
    inner = next((ref[key] for key in ("ref", "data") if isinstance(ref.get(key), dict)), None)
    return ref if inner is None else find_reference(inner)


def reference_of(fields: Mapping[str, Json], scope: Scope) -> PayloadRef:
    """Return the payload that a put answered with, which must be the scope's own.

    Raises:
        BadConfig, BadLocator: it names none.
        PayloadForeign: it is somebody else's.
    """
    names = ("uri", "sha256", "media_type", "byte_length")
    if missing := [name for name in names if name not in fields]:
        raise BadConfig(
            f"'ref' has no {missing[0]!r}; give the whole reference that a put answered"
        )
    uri, digest, media_type, size = (fields[name] for name in names)
    refused = "'ref' is not a reference: three texts and a number of bytes; give it whole"
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise BadConfig(refused)
    if not isinstance(uri, str) or not isinstance(digest, str) or not isinstance(media_type, str):
        raise BadConfig(refused)
    ref = PayloadRef(uri=uri, sha256=digest, media_type=media_type, byte_length=size)
    return check_owner(scope, ref)
