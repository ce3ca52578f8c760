"""Ranges from servers that answer a range with status 200, which obstore rejects.

rclone, the S3 server of the embedded stack, does so. obstore signs the URL.
"""

from __future__ import annotations

import re
from datetime import timedelta
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import obstore
from obstore.store import S3Store

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.port import NoSuchObject
from streams.payload.objects.ranges import RANGE_BYTES, Range, Replaced

_VALID = timedelta(minutes=5)
_TIMEOUT_S = 30.0
_CONTENT_RANGE = re.compile(r"bytes \d+-\d+/(\d+)")


def read_range(store: S3Store, key: str, start: int, tag: str | None) -> Range:
    """Return the range at `start` of the object with this tag.

    Raises:
        NoSuchObject: it does not exist.
        Replaced: the object has another tag.
        OSError: the server is down or rejects the request.
    """
    headers = {"Range": f"bytes={start}-{start + RANGE_BYTES - 1}"}
    if tag is not None:
        headers["If-Match"] = tag
    request = Request(obstore.sign(store, "GET", key, _VALID), headers=headers)  # noqa: S310 - ours
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the store's own URL
            whole = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if whole is None:
                raise PayloadUnavailable(f"{key}: the object store does not answer with ranges")
            return Range(memoryview(answer.read()), int(whole[1]), answer.headers.get("ETag"))
    except HTTPError as error:
        error.close()
        if error.code == 404:
            raise NoSuchObject(key) from None
        if error.code in (412, 416):
            raise Replaced from None
        raise
    except HTTPException as error:
        raise OSError(repr(error)) from error
