"""Secrets from files in one folder, as mounted by Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams.credential.errors import BadCredential, ProviderUnavailable
from streams.credential.fields import MAX_BYTES, check_name, fields_of
from streams.payload.port import Scope


class FileProvider:
    """Looks up `file:pg_main` in <folder>/<tenant>/<organization>/pg_main."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields in the file: a JSON object, or one line."""
        root = self._folder.resolve()
        parts = [check_name(one) for one in (scope.tenant_id, scope.organization_id, name)]
        tenant_folder = root.joinpath(*parts[:2])
        path = tenant_folder / parts[2]
        # A link may point to another file of the mount, but not to another tenant's.
        if not path.resolve().is_relative_to(
            tenant_folder.resolve()
        ) or not tenant_folder.resolve().is_relative_to(root):
            raise BadCredential(f"credential 'file:{name}' links outside its folder")
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise BadCredential(f"credential 'file:{name}' is longer than {MAX_BYTES} bytes")
            return fields_of(data.decode(), "", f"the file of 'file:{name}'")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError:
            raise BadCredential(f"credential 'file:{name}' is not UTF-8 text") from None
        except OSError as error:
            why = f"the file of 'file:{name}' cannot be read: {error.strerror}"
            raise ProviderUnavailable(why) from None
