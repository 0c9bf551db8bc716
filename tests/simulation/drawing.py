"""Small plots as SVG: lines over time, percentiles on a logarithmic scale, bars against a limit."""

import math
from collections.abc import Iterator, Mapping, Sequence

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 760, 300, 70, 40, 40, 150
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#0b7285")
_TICKS = 5


def lines(title: str, series: Mapping[str, Sequence[float]], across: tuple[float, str], unit: str) -> str:
    """Draw each series over the same stretch: where it ends, and what it is counted in."""
    highest = max((max(each, default=0.0) for each in series.values()), default=0.0) or 1.0
    top = _round_up(highest)
    parts = [*_frame(title), *_scale_of(top, unit), *_along(across)]
    for place, (name, values) in enumerate(series.items()):
        colour = COLOURS[place % len(COLOURS)]
        last = max(1, len(values) - 1)
        points = " ".join(f"{_x(at / last):.1f},{_y(each / top):.1f}" for at, each in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts.append(_named(place, name, colour))
    return _whole(parts, HEIGHT)


def percentiles(title: str, rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> str:
    """Draw a row of dots each, milliseconds on a logarithmic scale."""
    height = TOP + 30 * len(rows) + BOTTOM
    decades = max(2, math.ceil(math.log10(max(max(each) for each in rows.values()))))
    parts = [*_frame(title)]
    for decade in range(decades + 1):
        x = _x(decade / decades)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{height - BOTTOM}" stroke="#d0d7de"/>')
        parts.append(_text(x, height - BOTTOM + 18, f"{10**decade:,} ms", "middle"))
    for row, (name, values) in enumerate(rows.items()):
        y = TOP + 30 * row + 18
        at = [_x(math.log10(max(1.0, each)) / decades) for each in values]
        parts.append(_text(LEFT - 8, y + 4, name, "end"))
        parts.append(f'<line x1="{at[0]:.1f}" x2="{at[-1]:.1f}" y1="{y}" y2="{y}" stroke="#8c959f"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}"/>'
            for x, colour in zip(at, COLOURS, strict=False)
        ]
    parts += [_named(place, name, COLOURS[place]) for place, name in enumerate(names)]
    return _whole(parts, height)


def bars(title: str, rows: Sequence[tuple[str, float]], limit: float) -> str:
    """Draw a bar each, and where the limit is."""
    height = TOP + 26 * len(rows) + BOTTOM
    top = _round_up(max([limit, *(value for _, value in rows)]))
    left, room = 250, WIDTH - 250 - 70
    parts = [*_frame(title)]
    for row, (name, value) in enumerate(rows):
        y = TOP + 26 * row
        colour = COLOURS[1] if value > limit else COLOURS[0]
        long = room * value / top
        parts.append(_text(left - 8, y + 14, name, "end"))
        parts.append(f'<rect x="{left}" y="{y}" width="{long:.1f}" height="18" fill="{colour}"/>')
        parts.append(_text(left + long + 6, y + 14, f"{value:,.0f}", "start"))
    x = left + room * limit / top
    upright = f'x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{height - BOTTOM}"'
    parts.append(f'<line {upright} stroke="#24292f" stroke-dasharray="4"/>')
    parts.append(_text(x, height - BOTTOM + 16, f"a partition takes {limit:,.0f}", "middle"))
    return _whole(parts, height)


def _whole(parts: Sequence[str], height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" role="img">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>", ""])


def _frame(title: str) -> Iterator[str]:
    yield f"<title>{title}</title>"
    yield f'<text x="12" y="22" font-size="14" font-weight="bold" fill="#24292f">{title}</text>'


def _scale_of(top: float, unit: str) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        y = _y(tick / _TICKS)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#d0d7de"/>'
        yield _text(LEFT - 8, y + 4, f"{top * tick / _TICKS:,.0f}", "end")
    yield _text(LEFT - 8, TOP - 4, unit, "end")


def _along(across: tuple[float, str]) -> Iterator[str]:
    end, unit = across
    for tick in range(_TICKS + 1):
        yield _text(_x(tick / _TICKS), HEIGHT - BOTTOM + 18, f"{end * tick / _TICKS:,.0f} {unit}", "middle")


def _named(place: int, name: str, colour: str) -> str:
    y = TOP + 8 + 20 * place
    x = WIDTH - RIGHT + 16
    return f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>' + _text(
        x + 16, y, name, "start"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#24292f">{text}</text>'


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share


def _round_up(value: float) -> float:
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in (1, 2, 2.5, 5, 10) if step * scale >= value)
