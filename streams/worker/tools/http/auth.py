"""Authorization header of a request, from its task's credential."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Credentials


async def authorization(credentials: Credentials, auth: Json, call: Call) -> dict[str, str]:
    """Return the headers for `auth`: a credential's name, or {type, credential}.

    `token` makes a bearer token, `username` and `password` basic authentication, `header` and
    `value` (or `header_name` and `api_key`) a custom header.

    Raises:
        UnknownCredential: it does not exist.
        BadConfig: it lacks the required fields.
    """
    kind: Json = None
    if isinstance(auth, Mapping):
        kind = auth.get("type")
        auth = auth.get("credential") or auth.get("name")
    if not isinstance(auth, str):
        raise BadConfig("'auth' must name a credential, or be {type, credential}")
    fields = await credentials.find(call.tenant_id, call.organization_id, auth)
    if kind in (None, "bearer") and "token" in fields:
        return {"Authorization": f"Bearer {fields['token']}"}
    if kind in (None, "basic") and "username" in fields:
        pair = f"{fields['username']}:{fields.get('password', '')}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    if kind in (None, "header") and "header" in fields:
        return {fields["header"]: fields.get("value", "")}
    if kind in (None, "header", "api_key") and "api_key" in fields:
        return {fields.get("header_name") or "X-API-Key": fields["api_key"]}
    wanted = "'token', 'username' and 'password', 'header' and 'value', or 'api_key'"
    raise BadConfig(f"credential {auth!r} does not fit type {kind or 'any'!r}: it needs {wanted}")
