"""Settings: one validated value, each part of which knows where it came from."""

from streams.settings.load import Loaded, load
from streams.settings.model import Settings
from streams.settings.problems import BadSettings, SettingsProblem

__all__ = ["BadSettings", "Loaded", "Settings", "SettingsProblem", "load"]
