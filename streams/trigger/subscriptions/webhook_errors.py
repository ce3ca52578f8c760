"""Errors of webhooks.

Refused
├── NoSuchWebhook     no subscription declares the path
├── SharedPath        several subscriptions declare the path
├── NotVerified       the request does not prove that its sender knows the secret
├── WebhookPaused     the subscription is paused; send the request again later
└── LimitReached      the subscription is at a limit; send the request again later
Unavailable
└── SecretUnavailable   the secret of the subscription cannot be read
"""

from __future__ import annotations

from streams.errors import Refused, Unavailable


class NoSuchWebhook(Refused):
    """No subscription declares the path."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"no subscription with `source: webhook` has gateway_path {path}; "
            "`streams subscription list` has the paths"
        )


class SharedPath(Refused):
    """Several subscriptions declare the path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"several subscriptions have gateway_path {path}; change all but one")


class NotVerified(Refused):
    """The signature or token is missing or wrong."""

    def __init__(self, header: str) -> None:
        super().__init__(f"{header} does not have a valid signature or token; nothing was started")


class WebhookPaused(Refused):
    """The subscription is paused."""

    retry_after_s = 60

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is paused; send the request again later")


class LimitReached(Refused):
    """The subscription is at one of its limits."""

    def __init__(self, limit: str, count: int, *, retry_after_s: int) -> None:
        super().__init__(f"{limit} is {count}, and is reached; send the request again later")
        self.retry_after_s = retry_after_s


class SecretUnavailable(Unavailable):
    """The secret of a subscription cannot be read; its message does not name it."""

    dependency = "the credential of a webhook"

    def __init__(self) -> None:
        super().__init__("the request cannot be verified: see the log of the API")
