"""What a long fit costs: memory and disk before it begins, and time while it goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from time import perf_counter

import robustphase as rp
from robustphase.cli.terminal import Screen, shown
from robustphase.files import available_memory, checkpoint_needed, memory_needed
from robustphase.files.checkpoint import MOST_WAITING
from robustphase.formatting import duration, in_bytes

#: Covariates of fewer bytes are fitted before anybody has read an estimate: 256 MiB.
LONG_RUN = 256 << 20
#: Passes that the default engine needs as a rule, from the least to the most; whitening needs about these more.
USUAL_PASSES, WHITENING = (30, 70), (20, 50)
#: From fewer passes than this nothing is told about the time of one.
FEW_PASSES = 3


def say_costs(
    see: Screen, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource, checkpoint: Path | None = None
) -> None:
    """Say what a long run will take, and warn of what it will not get."""
    m, n = rows.shape
    memory, needed, available = memory_needed(rows), checkpoint_needed(rows), available_memory()
    if checkpoint is not None:
        memory += min(needed, MOST_WAITING)
    parts = [f"memory needed beyond the data: about {in_bytes(memory, 2)}"]
    if available is not None:
        parts[0] += f" of {in_bytes(available, 2)} that are free"
        if memory > available:
            see.warning(f"{parts[0]}: the system may end the run before it is done.")
    if checkpoint is not None and checkpoint.parent.is_dir():
        free = shutil.disk_usage(checkpoint if checkpoint.is_dir() else checkpoint.parent).free
        if usual_passes(model) is None:
            parts.append(f"the checkpoint grows with every step ({in_bytes(free, 2)} are free on its disk)")
        else:
            parts.append(
                f"the checkpoint grows to about {in_bytes(needed, 2)} of {in_bytes(free, 2)} that are free on its disk"
            )
        if needed > free:
            see.warning(f"{shown(checkpoint)} will not hold the whole run: {parts[-1]}.")
    if m * n * rows.dtype.itemsize >= LONG_RUN and not see.quiet:
        see.note("; ".join(parts))


def usual_passes(model: rp.RobustPhaseRetrieval) -> tuple[int, int] | None:
    """Least and most passes that a fit takes as a rule; None where that depends on the steps of a descent."""
    if model.step != "newton" or model.batches > 1 or (isinstance(model.init, str) and model.init != "auto"):
        return None
    low, high = USUAL_PASSES
    return (low + WHITENING[0], high + WHITENING[1]) if model.whiten else (low, high)


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
        if self._usual is None or made < FEW_PASSES or done > self._usual[1]:
            return ""
        # The last pass counts since it began and is not done.
        each = (perf_counter() - self._since) / (made - 0.5)
        low, high = (each * max(0, usual - done + 1) for usual in self._usual)
        if low == 0:
            return f"usually done within {duration(high)}"
        return f"usually {duration(low)} to {duration(high)} more"

    def _counts(self) -> tuple[int, int]:
        return self._rows.passes - self._first, int(getattr(self._rows, "recalled", 0))
