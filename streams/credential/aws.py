"""Secrets from AWS Secrets Manager."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Protocol, TypedDict

from streams.credential.errors import BadCredential, ProviderUnavailable
from streams.credential.fields import fields_of
from streams.payload.port import Scope

# Names that the service allows, except those that parse as an ARN.
_NAME = re.compile(r"[A-Za-z0-9_+=.@-]{1,256}(/[A-Za-z0-9_+=.@-]{1,256})*")
_NOT_FOUND_CODE = "ResourceNotFoundException"
_REJECTED_CODES = frozenset(
    {"InvalidParameterException", "InvalidRequestException", "DecryptionFailure"}
)


class SecretValue(TypedDict, total=False):
    """The part of the response that is read; a binary secret has no string."""

    SecretString: str


class SecretsClient(Protocol):
    """The used method of botocore's Secrets Manager client."""

    def get_secret_value(self, *, SecretId: str) -> SecretValue:  # noqa: N803 - AWS's name
        """Return the current version of a secret."""
        ...


class AwsProvider:
    """Looks up `aws:pg_main` under a prefix with tenant and organization.

    Login is botocore's default: environment, profile, or instance role. The secret is a JSON
    object of fields, or one line.
    """

    def __init__(
        self,
        *,
        region: str,
        endpoint: str | None = None,
        prefix: str = "noetl/{tenant}/{organization}/",
        timeout_s: float = 10.0,
        client: SecretsClient | None = None,
    ) -> None:
        self._prefix, self._region, self._endpoint = prefix, region, endpoint
        self._timeout_s, self._client = timeout_s, client

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields of the current version of a secret."""
        if not _NAME.fullmatch(name) or not all(
            _NAME.fullmatch(one) and "/" not in one
            for one in (scope.tenant_id, scope.organization_id)
        ):
            raise BadCredential(f"'aws:{name}' is not a valid secret name")
        secret_id = self._prefix.replace("{tenant}", scope.tenant_id)
        secret_id = secret_id.replace("{organization}", scope.organization_id) + name
        return await asyncio.to_thread(self._get, secret_id, name)

    def _get(self, secret_id: str, name: str) -> Mapping[str, str] | None:
        # Imported here: it takes 0.25 s, and most deployments do not need it.
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._service().get_secret_value(SecretId=secret_id)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code == _NOT_FOUND_CODE:
                return None
            why = f"AWS Secrets Manager refuses 'aws:{name}' ({code})"
            if code in _REJECTED_CODES:
                raise BadCredential(f"{why}; check the secret {secret_id}") from None
            raise ProviderUnavailable(f"{why}; may this process read {secret_id}?") from None
        except BotoCoreError as error:
            why = f"AWS Secrets Manager does not answer ({type(error).__name__})"
            raise ProviderUnavailable(f"{why}; retrying 'aws:{name}'") from None
        if (text := found.get("SecretString")) is None:
            raise BadCredential(f"the secret {secret_id} is binary; store a JSON object of fields")
        return fields_of(text, "", f"the secret {secret_id}")

    def _service(self) -> SecretsClient:
        if self._client is None:
            import boto3
            from botocore.config import Config

            self._client = boto3.session.Session().client(
                "secretsmanager",
                region_name=self._region,
                endpoint_url=self._endpoint,
                config=Config(
                    connect_timeout=self._timeout_s,
                    read_timeout=self._timeout_s,
                    retries={"total_max_attempts": 2, "mode": "standard"},
                ),
            )
        return self._client
