"""The endpoint of webhooks: subscriptions with `source: webhook`."""

from __future__ import annotations

from aiohttp import web

from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.trigger.subscriptions.webhook import Delivery

PREFIX, ANY = "/ingress/", "*/*"


async def receive(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Start an execution: 202 for a new one, 200 if the key already has one."""
    delivery = Delivery(
        path=PREFIX + request.match_info["path"],
        headers=[(name.decode("latin-1"), value) for name, value in request.raw_headers],
        query=dict(request.query),
        body=await request.read(),
    )
    accepted = await runtime.webhooks.receive(runtime.scope_of(request), delivery)
    body = {
        "execution_id": str(accepted.execution_id),
        "subscription": accepted.subscription,
        "is_new": accepted.is_new,
    }
    return json_response(body, 202 if accepted.is_new else 200)
