"""Simulated runs as a picture: four panels over time, a line for each run. SVG, written here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from attrs import frozen

from engine.simulate.record import Run, Sample

_WIDTH, _PANEL, _GAP, _LEFT, _RIGHT, _TOP = 860, 130, 46, 70, 20, 58
# Told apart by people who see no red or green, too (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
_TICKS = 3
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2")
_NICE = (1, 2, 2.5, 5, 10)


@frozen
class _Panel:
    title: str
    value: Callable[[Sample], float]


_PANELS = (
    _Panel("cost, $ an hour", lambda sample: sample.usd_per_hour.micros / 1e6),
    _Panel("pods waiting", lambda sample: sample.waiting),
    _Panel("GPUs that nobody uses", lambda sample: max(0, sample.gpus - sample.gpus_used)),
    _Panel("nodes on their way out", lambda sample: sample.going),
)


def simulation_svg(runs: Sequence[Run], title: str) -> str:
    """The picture as a text. At most five runs are told apart."""
    height = _TOP + len(_PANELS) * (_PANEL + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="11" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600" fill="#222">{escape(title)}</text>',
        *_legend(runs),
    ]
    for number, panel in enumerate(_PANELS):
        parts += _drawn(panel, runs, _TOP + number * (_PANEL + _GAP) + 18)
    return "\n".join([*parts, "</svg>", ""])


def _legend(runs: Sequence[Run]) -> list[str]:
    parts, x = [], _LEFT
    for number, run in enumerate(runs):
        parts.append(f'<line x1="{x}" y1="38" x2="{x + 22}" y2="38" {_stroke(number)}/>')
        parts.append(f'<text x="{x + 28}" y="42" fill="#222">{escape(run.name)}</text>')
        x += 44 + 7 * len(run.name)
    return parts


def _drawn(panel: _Panel, runs: Sequence[Run], top: int) -> list[str]:
    began, ended = runs[0].began, max(run.ended for run in runs)
    most = max((panel.value(sample) for run in runs for sample in run.samples), default=0.0)
    step = _nice(most / _TICKS)
    ceiling = max(step, step * -(-most // step)) if step else 1.0
    bottom, right = top + _PANEL, _WIDTH - _RIGHT

    def x_of(at: datetime) -> float:
        return _LEFT + (right - _LEFT) * ((at - began) / (ended - began) if ended > began else 0)

    def y_of(value: float) -> float:
        return bottom - _PANEL * value / ceiling

    parts = [f'<text x="{_LEFT}" y="{top - 6}" fill="#444" font-weight="600">{escape(panel.title)}</text>']
    value = 0.0
    while value <= ceiling * 1.0001:
        y = y_of(value)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#666">{value:,g}</text>')
        value += step or 1.0
    for at in _moments(began, ended):
        x = x_of(at)
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#f2f2f2"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="#666">{_time(at, began, ended)}</text>'
        )
    for number, run in enumerate(runs):
        path = _steps([(x_of(sample.at), y_of(panel.value(sample))) for sample in run.samples])
        parts.append(f'<path d="{path}" fill="none" {_stroke(number)}/>')
    return parts


def _steps(points: Sequence[tuple[float, float]]) -> str:
    """A value lasts until the next one."""
    if not points:
        return ""
    drawn = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    drawn += [f"H{x:.1f}V{y:.1f}" for x, y in points[1:]]
    return "".join(drawn)


def _stroke(number: int) -> str:
    at = number % len(_COLOURS)
    dashes = f' stroke-dasharray="{_DASHES[at]}"' if _DASHES[at] else ""
    return f'stroke="{_COLOURS[at]}" stroke-width="1.6"{dashes}'


def _nice(least: float) -> float:
    """The first round number that is not below it."""
    if least <= 0:
        return 0.0
    size = 1.0
    while size * _NICE[-1] < least:
        size *= 10
    while size > least:
        size /= 10
    return next(size * each for each in _NICE if size * each >= least * 0.9999)


def _moments(began: datetime, ended: datetime) -> list[datetime]:
    """Whole steps of the time: between four and nine of them."""
    length = ended - began
    steps = (timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1), timedelta(hours=3), timedelta(hours=6),
             timedelta(days=1), timedelta(days=7))  # fmt: skip
    step = next((each for each in steps if length / each <= 9), length / 6)
    return [began + step * number for number in range(int(length / step) + 1)]


def _time(at: datetime, began: datetime, ended: datetime) -> str:
    return f"{at:%d %b}" if ended - began > timedelta(days=4) else f"{at:%H:%M}"
