"""A plot of replay times by the length of the log, as SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 70, 130, 20, 50
FULL, SNAPSHOT = "#b3541e", "#1f6f8b"
Point = tuple[int, float, float]
"""A length, and the seconds of a full replay and of one from a snapshot."""


def replay_plot(points: Sequence[Point]) -> str:
    """Return a plot of both times; both axes are logarithmic."""
    lengths = [one[0] for one in points]
    seconds = [value for one in points for value in one[1:]]
    across = _Axis(lengths, LEFT, WIDTH - RIGHT)
    up = _Axis(seconds, HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_grid(across, up),
        *_curve([(across(n), up(full)) for n, full, _ in points], FULL, "full"),
        *_curve([(across(n), up(short)) for n, _, short in points], SNAPSHOT, "with snapshots"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "events of the execution", "middle"),
        _text(LEFT - 10, TOP - 6, "seconds", "end"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Axis:
    """A logarithmic scale from whole decades to pixels."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low, high = floor(log10(min(values))), ceil(log10(max(values)))
        self.high = max(high, self.low + 1)
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def decades(self) -> Iterator[tuple[float, str]]:
        for power in range(self.low, self.high + 1):
            yield self(10.0**power), f"{10.0**power:,g}" if power < 0 else f"{10**power:,}"


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for x, label in across.decades():
        yield f'<line x1="{x}" y1="{up.begin}" x2="{x}" y2="{up.end}" stroke="#ddd"/>'
        yield _text(x, HEIGHT - BOTTOM + 18, label, "middle")
    for y, label in up.decades():
        yield f'<line x1="{across.begin}" y1="{y}" x2="{across.end}" y2="{y}" stroke="#ddd"/>'
        yield _text(LEFT - 10, y + 4, label, "end")


def _curve(points: Sequence[tuple[float, float]], colour: str, label: str) -> Iterator[str]:
    joined = " ".join(f"{x},{y}" for x, y in points)
    yield f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    x, y = points[-1]
    yield f'<text x="{x + 10}" y="{y + 4}" fill="{colour}">{label}</text>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#333">{text}</text>'
