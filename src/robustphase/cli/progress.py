"""What a long run will take, and how far it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import perf_counter

import robustphase as rp
from robustphase.cli.terminal import Screen, shown
from robustphase.estimator.progress import FEW_PASSES, say_left, seconds_left, usual_passes
from robustphase.files import available_memory, checkpoint_needed, memory_needed
from robustphase.files.checkpoint import MOST_WAITING
from robustphase.formatting import in_bytes

#: Covariates of fewer bytes are fitted before anybody has read an estimate: 256 MiB.
LONG_RUN = 256 << 20


def say_costs(
    see: Screen, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource, checkpoint: Path | None = None
) -> None:
    """Say what a long run will take, and warn of what it will not get."""
    m, n = rows.shape
    memory, needed, available = memory_needed(rows), checkpoint_needed(rows), available_memory()
    if checkpoint is not None:
        memory += min(needed, MOST_WAITING)
    parts = [f"memory needed beyond the data: about {in_bytes(memory, about=True)}"]
    if available is not None:
        parts[0] += f" of {in_bytes(available, about=True)} that are free"
        if memory > available:
            see.warning(f"{parts[0]}: the system may end the run before it is done.")
    if checkpoint is not None and checkpoint.parent.is_dir():
        free = shutil.disk_usage(checkpoint if checkpoint.is_dir() else checkpoint.parent).free
        left, most = in_bytes(free, about=True), in_bytes(needed, about=True)
        if usual_passes(model) is None:
            parts.append(f"the checkpoint grows with every step ({left} are free on its disk)")
        else:
            parts.append(f"the checkpoint grows to about {most} of {left} that are free on its disk")
        if needed > free:
            see.warning(f"{shown(checkpoint)} will not hold the whole run: {parts[-1]}.")
    if m * n * rows.dtype.itemsize >= LONG_RUN and not see.quiet:
        see.note("; ".join(parts))


class Progress:
    """How far a fit is, by its passes; made when it begins.

    Parameters
    ----------
    model : RobustPhaseRetrieval
        What is being fitted.
    rows : RowSource
        What it is being fitted to.
    """

    def __init__(self, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource) -> None:
        self._rows, self._first, self._usual = rows, rows.passes, usual_passes(model)
        self._since = perf_counter()

    def state(self) -> str:
        """Passes so far."""
        done, recalled = self._counts()
        from_disk = f" ({recalled} of them from the checkpoint)" if recalled else ""
        return f"{done} passes over {self._rows.shape[0]} samples{from_disk}"

    def left(self) -> str:
        """Time left as a rule, once a few passes have shown how long one takes; empty before and where nobody can tell."""
        done, recalled = self._counts()
        made = done - recalled
        if made <= 1:
            # Passes from the checkpoint take hardly any time; the clock starts with the first real one.
            self._since = perf_counter()
        if made < FEW_PASSES:
            return ""
        # The last pass counts since it began and is not done.
        each = (perf_counter() - self._since) / (made - 0.5)
        return say_left(seconds_left(self._usual, done, each))

    def _counts(self) -> tuple[int, int]:
        return self._rows.passes - self._first, int(getattr(self._rows, "recalled", 0))
