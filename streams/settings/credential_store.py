"""Settings of stored credentials: keys, the worker token, external providers."""

from __future__ import annotations

from streams.settings.fields import Positive, Secret, Section, Text


class FileProviderSettings(Section):
    """For names like `file:pg_main`: files below <folder>/<tenant>/<organization>/."""

    folder: Text


class AwsProviderSettings(Section):
    """For names like `aws:pg_main`: secrets of AWS Secrets Manager.

    `prefix` is prepended to the name; it should contain the tenant, to separate tenants.
    """

    region: Text
    endpoint: Text | None = None
    prefix: Text = "noetl/{tenant}/{organization}/"
    timeout_seconds: Positive = 10


class Providers(Section):
    """External providers of credentials; disabled unless set here."""

    # For names like `env:PG_MAIN`: NOETL_CREDENTIAL_PG_MAIN of the API process, for all tenants.
    environment: bool = False
    file: FileProviderSettings | None = None
    aws: AwsProviderSettings | None = None


class CredentialStoreSettings(Section):
    """Stored credentials. Only the API and the `streams credential` command need the key."""

    # One key per line, 32 bytes in base64; the first encrypts, all of them decrypt.
    key: Secret | None = None
    key_file: Text | None = None
    # Authenticates workers to the API when they request a secret; the same for both.
    worker_token: Secret | None = None
    worker_token_file: Text | None = None
    providers: Providers = Providers()
