"""Settings: one validated value, with the origin of each part."""

from streams.settings.load import Loaded, load
from streams.settings.model import Settings
from streams.settings.problems import BadSettings, SettingsProblem

__all__ = ["BadSettings", "Loaded", "Settings", "SettingsProblem", "load"]
