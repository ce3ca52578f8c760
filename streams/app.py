"""The only place where adapters are chosen."""

from __future__ import annotations

import os
from pathlib import Path

from streams.local.settings import stack_settings
from streams.local.state import find_stack
from streams.settings import Loaded, load


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the settings in effect here, with a running embedded stack under the file.

    `config` is the configuration file and `data` the stack's folder; None means the
    usual one of each.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    stack = find_stack(data)
    return load(config, env=os.environ, stack=stack_settings(stack) if stack else None)
