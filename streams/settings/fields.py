"""Types of setting values, and the section that groups them."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from streams.segments import is_pool_name, wrong_segment


class Section(BaseModel):
    """A group of settings: frozen, without unknown keys.

    An empty section (every line below it commented out) means its defaults, and setting one key
    leaves the others at their defaults.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        if value is None:
            return {}
        if not isinstance(value, dict):
            return value
        return {key: cls._with_default(key, given) for key, given in value.items()}

    @classmethod
    def _with_default(cls, key: str, given: Any) -> Any:
        """Complete a section with this field's own default, not its class's."""
        field = cls.model_fields.get(key)
        if field is not None and given is None and get_origin(field.annotation) is dict:
            return {}
        if field is None or not isinstance(field.default, Section):
            return given
        if given is None:
            return field.default
        return {**dict(field.default), **given} if isinstance(given, dict) else given


def _no_truth_as_number(value: object) -> object:
    """Reject YAML's true and false as numbers; pydantic would read 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a whole number, not true or false")
    return value


def _split_at_commas(value: object) -> object:
    """Split text at commas into a list, as environment variables need."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _is_segment(value: str) -> str:
    """Reject what a locator cannot hold: every event carries one."""
    if (wrong := wrong_segment(value)) is not None:
        raise ValueError(wrong)
    return value


def _is_pool(value: str) -> str:
    if not is_pool_name(value):
        raise ValueError("must be letters, digits, '.', '_' and '-': it is part of a topic's name")
    return value


Number = Annotated[int, BeforeValidator(_no_truth_as_number)]
Positive = Annotated[Number, Field(ge=1)]
NotNegative = Annotated[Number, Field(ge=0)]
Port = Annotated[Number, Field(ge=1, le=65535)]
Text = Annotated[str, Field(min_length=1)]
Segment = Annotated[Text, AfterValidator(_is_segment)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_split_at_commas)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Pool = Annotated[Text, AfterValidator(_is_pool)]
Secret = SecretStr
