"""Configuration of `artifact`: content types, codecs, data, references."""

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
    """Return the given content type, if any.

    Raises:
        BadConfig: it is not valid.
    """
    kind = given.get("content_type")
    if kind is None or (isinstance(kind, str) and _MEDIA_TYPE.fullmatch(kind)):
        return kind
    raise BadConfig(f"'content_type' is {kind!r}, not a media type such as text/csv")


def plain_type(kind: str) -> str:
    """Return a server's content type if a reference can carry it."""
    return kind if _MEDIA_TYPE.fullmatch(kind) else OCTETS


def codec_of(given: Mapping[str, Json]) -> Compression | None:
    """Return the given compression, if any.

    Raises:
        BadConfig: it is unknown.
    """
    codec = given.get("compression")
    if codec is not None and codec not in CODECS:
        raise BadConfig(f"'compression' is {codec!r}, not one of {', '.join(CODECS)}")
    return cast("Compression | None", codec)


def encoded(value: Json, media_type: str) -> bytes:
    """Return `value` encoded for its media type: text as is, anything else as JSON.

    Raises:
        BadConfig: it is neither, or does not match the media type.
    """
    if media_type == ARROW:
        raise BadConfig("'data' is not an Arrow stream; put one from a 'url' or a 'file'")
    if not isinstance(value, str):
        text = _json_text(value)
    elif is_json(media_type):
        text = _checked_json(value, media_type)
    else:
        text = value
    # JSON is always read as UTF-8.
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
    """Return text that is put as JSON; it must be valid to be read back."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        why = f"'data' is text that is not JSON, and 'content_type' is {media_type}: {error}"
        raise BadConfig(f"{why}; write it with `| tojson`, or omit 'content_type'") from error
    return text


def execution_id_of(value: Json) -> int:
    """Return an execution id, which must fit into 64 bits.

    Raises:
        BadConfig: it is none.
    """
    text = str(value)
    if _DIGITS.fullmatch(text) and (number := int(text)) < 2**63:
        return number
    raise BadConfig(f"'execution_id' is {text[:80]!r}, not an execution id")


def with_args(config: Config) -> dict[str, Json]:
    """Return a task's fields merged with those of `args`."""
    inner = config.get("args")
    return {**(inner if isinstance(inner, dict) else {}), **config}


def with_input(config: Config) -> dict[str, Json]:
    """Return a task's fields in NoETL's spelling, where `input.result_ref` is the `ref`."""
    inner = config.get("input")
    given = {**(inner if isinstance(inner, dict) else {}), **with_args(config)}
    if "result_ref" in given:
        given["ref"] = given.pop("result_ref")
    return given


def is_value(ref: Json) -> bool:
    """Return whether a `result_ref` is a result itself, which was too small to be stored."""
    found = find_reference(ref)
    return isinstance(found, dict) and "uri" not in found


def find_reference(ref: Json) -> Json:
    """Return the name or payload reference within `ref`.

    That is a name, either kind of reference, the answer of a put, or a task's whole view.
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
    """Return the payload reference of a put's answer, which must belong to the scope.

    Raises:
        BadConfig, BadLocator: it is not valid.
        PayloadForeign: it belongs to another tenant or organization.
    """
    names = ("uri", "sha256", "media_type", "byte_length")
    if missing := [name for name in names if name not in fields]:
        raise BadConfig(
            f"'ref' has no {missing[0]!r}; give the whole reference that a put returned"
        )
    uri, digest, media_type, size = (fields[name] for name in names)
    refused = "'ref' is not a reference: three texts and a number of bytes; give it whole"
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise BadConfig(refused)
    if not isinstance(uri, str) or not isinstance(digest, str) or not isinstance(media_type, str):
        raise BadConfig(refused)
    ref = PayloadRef(uri=uri, sha256=digest, media_type=media_type, byte_length=size)
    return check_owner(scope, ref)
