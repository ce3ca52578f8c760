"""Secrets in files of one folder, as Kubernetes mounts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streams.credential.errors import BadCredential, ProviderUnavailable
from streams.credential.fields import MAX_BYTES, check_name, fields_of
from streams.payload.port import Scope


class FileProvider:
    """Finds `file:pg_main` in <folder>/<tenant>/<organization>/pg_main, and nothing outside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def find(self, scope: Scope, name: str) -> Mapping[str, str] | None:
        """Return the fields in the file: a JSON object, or one line."""
        root = self._folder.resolve()
        parts = [check_name(one) for one in (scope.tenant_id, scope.organization_id, name)]
        own = root.joinpath(*parts[:2])
        path = own / parts[2]
        # A link may lead to another file of the folder's mount, but not to another tenant's.
        if not path.resolve().is_relative_to(own.resolve()) or not own.resolve().is_relative_to(
            root
        ):
            raise BadCredential(f"credential 'file:{name}' leads out of its folder")
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise BadCredential(f"credential 'file:{name}' is longer than {MAX_BYTES} bytes")
            return fields_of(data.decode(), "", f"the file of 'file:{name}'")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError:
            raise BadCredential(f"credential 'file:{name}' is no UTF-8 text") from None
        except OSError as error:
            why = f"the file of 'file:{name}' cannot be read: {error.strerror}"
            raise ProviderUnavailable(why) from None
