"""Where the secrets that playbooks name come from, and what opens those that are stored."""

from __future__ import annotations

from streams.settings.fields import Positive, Secret, Section, Text


class FileProviderSettings(Section):
    """Names like `file:pg_main`: files below <folder>/<tenant>/<organization>/."""

    folder: Text


class AwsProviderSettings(Section):
    """Names like `aws:pg_main`: secrets of AWS Secrets Manager.

    `prefix` is put before the name; it keeps tenants apart, so it should name them.
    """

    region: Text
    endpoint: Text | None = None
    prefix: Text = "noetl/{tenant}/{organization}/"
    timeout_seconds: Positive = 10


class Providers(Section):
    """Outside keepers of secrets; none is asked unless it is set here."""

    # Names like `env:PG_MAIN`: NOETL_CREDENTIAL_PG_MAIN of the API's process, for every tenant.
    environment: bool = False
    file: FileProviderSettings | None = None
    aws: AwsProviderSettings | None = None


class CredentialStoreSettings(Section):
    """Stored credentials. Only whoever sets or opens them (API, command line) needs the key."""

    # One key of 32 bytes in base64 a line; the first seals, the others still open.
    key: Secret | None = None
    key_file: Text | None = None
    # What a worker shows the API when it asks for a secret; both sides need the same.
    worker_token: Secret | None = None
    worker_token_file: Text | None = None
    providers: Providers = Providers()
