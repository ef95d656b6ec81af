"""What a drawing shows, as plain lists: this room measures, another one draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def series(
    name: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    style: str = "both",
) -> dict[str, Any]:
    """Named points, with a band or bars from ``low`` to ``high``; style "line", "points" or "both"."""
    bounds = {key: None if value is None else _plain(value) for key, value in (("low", low), ("high", high))}
    return {"name": name, "x": _plain(x), "y": _plain(y), **bounds, "style": style}


def chart(
    title: str, x_label: str, y_label: str, *lines: dict[str, Any], log_x: bool = False, log_y: bool = False
) -> dict[str, Any]:
    """A chart of several series."""
    return {
        "title": title,
        "x_label": x_label,
        "y_label": y_label,
        "log_x": log_x,
        "log_y": log_y,
        "series": list(lines),
    }


def _plain(values: npt.ArrayLike) -> list[float]:
    return [float(value) for value in np.ravel(np.asarray(values))]
