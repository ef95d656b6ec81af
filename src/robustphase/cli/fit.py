"""``robustphase fit``: from a file of samples to a signal, a weight for every sample, and a report.

It says beforehand what a long run will take, and meanwhile how far it is.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

import robustphase as rp
from robustphase.atomic import STALE, sweep_leftovers
from robustphase.cli.app import as_command, as_request, command_line, file_option, flag, general_options, option
from robustphase.cli.exit_codes import MODEL_FAILS, UNSETTLED
from robustphase.cli.fit_outcome import (
    facts_of_many,
    facts_of_one,
    keep_report,
    keep_result,
    model_checks,
    write_flagged,
)
from robustphase.cli.fit_request import FitRequest, read_labels
from robustphase.cli.options import (
    FIELDS,
    LAWS,
    MEAN_ESTIMATORS,
    NOISE_MEANS,
    NONFINITE,
    STEPS,
    TRANSPOSE,
    Level,
    NumberOrFile,
    Start,
    flagged_table,
    shown_shapes,
)
from robustphase.cli.outputs import note_written, written
from robustphase.cli.terminal import Screen, screen, shown
from robustphase.estimator.progress import FEW_PASSES, say_left, seconds_left, usual_passes
from robustphase.files import available_memory, checkpoint_needed, checkpointed, memory_needed, open_samples
from robustphase.files.checkpoint import MOST_WAITING
from robustphase.formatting import in_bytes
from robustphase.report import FitDiagnostics

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
    """How far a fit is, by its passes; made when it begins."""

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


INPUT, ASSUME, HOW, OUTPUT, LONG = "Input", "What to assume", "How to compute", "Output", "Long runs"


@as_command(
    "fit",
    notes="Exit codes: 0 converged, 3 finished without converging, 4 finished but the data contradict the model (in both cases "
    "the files are written), 2 bad usage, 1 error, 130 interrupted.",
    example="""
robustphase simulate data.npz --attack leverage --noise-mean 3
robustphase fit data.npz --contamination 0.1 --noise-mean unknown --out result.npz --report report.html
""",
)
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@file_option(
    INPUT,
    "--responses",
    metavar="Y.npy",
    help="File of any kind with the responses, if DATA holds the covariates alone.",
)
@option(INPUT, "--covariates-name", metavar="NAME", help="Name of the covariates in DATA, if it is not found.")
@option(INPUT, "--responses-name", metavar="NAME", help="Name of the responses in DATA, if it is not found.")
@option(
    INPUT,
    "--transpose",
    type=click.Choice(TRANSPOSE),
    help="What has its samples in the last axis and not in the first, such as one sensing vector in every column.",
)
@option(
    INPUT,
    "--column",
    type=click.IntRange(min=0),
    metavar="K",
    help="Of responses for several signals (samples x signals, or frames), fit this one alone; the first is 0.",
)
@file_option(
    INPUT,
    "--groups",
    metavar="LABELS.npy",
    help="File with one label per sample, or several: samples with the same label are good or bad together.",
)
@option(
    ASSUME,
    "--contamination",
    type=Level(auto=True),
    default=0.1,
    help="Share of the samples that may be bad. Too much costs accuracy, too little costs safety; auto finds it.",
)
@option(
    ASSUME,
    "--noise-mean",
    type=click.Choice(NOISE_MEANS),
    default="zero",
    help="Whether a constant background may be added to every response.",
)
@option(
    ASSUME,
    "--noise",
    type=click.Choice(LAWS),
    default="auto",
    help="Law of the noise: the same for all samples, counts of photons, or found from the data.",
)
@option(
    ASSUME,
    "--saturation",
    type=NumberOrFile(),
    help="Responses at or above it are censored: they say 'at least that'.",
)
@file_option(
    ASSUME,
    "--background",
    metavar="FILE",
    help="File with the known part of every response that is not the signal's, such as a dark frame.",
)
@flag(
    ASSUME,
    "--drift",
    help="Gain and background may drift slowly over the samples, which stand in the order of reading.",
)
@option(
    ASSUME,
    "--field",
    type=click.Choice(FIELDS),
    default="auto",
    help="Where the signal lives; auto follows the type of the covariates. A complex signal may stand behind real patterns.",
)
@option(
    ASSUME,
    "--whiten/--no-whiten",
    default=None,
    show_default=False,
    help="Always or never standardise scale, mean and covariance of the covariates. Default: where they need it.",
)
@option(
    ASSUME,
    "--nonfinite",
    type=click.Choice(NONFINITE),
    default="raise",
    help="Samples with NaN or infinities: refuse the data, or count them as bad.",
)
@option(
    ASSUME,
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    default=0.01,
    help="Confidence parameter of the theorems.",
)
@option(HOW, "--init", type=Start(), default="auto", help="Where to start; mean and covariance are the paper's.")
@option(
    HOW,
    "--mean-estimator",
    type=click.Choice(MEAN_ESTIMATORS),
    default="filter",
    help="Robust mean of gradients.",
)
@option(
    HOW,
    "--step",
    type=click.Choice(STEPS),
    default="newton",
    help="The default engine, or the constant steps of the paper's Algorithms 2 and 4.",
)
@option(
    HOW,
    "--batches",
    type=click.IntRange(min=1),
    metavar="COUNT",
    default=1,
    help="Split the samples into this many fresh batches, one step on each, as the theory asks.",
)
@flag(HOW, "--no-polish", help="Leave out the refinement after the descent.")
@option(HOW, "--max-iter", type=click.IntRange(min=1), metavar="COUNT", default=50, help="Most steps of a descent.")
@option(
    HOW,
    "--tol",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    default=1e-6,
    help="Stop a descent when a step is shorter than this fraction of the signal.",
)
@option(
    HOW,
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    metavar="SEED",
    default=0,
    help="Seed of first guesses and subsamples; the same seed gives the same answer.",
)
@file_option(
    OUTPUT,
    "--out",
    metavar="RESULT.npz",
    help="Where the result goes. Default: the name of DATA with -result.npz at its end, in the current folder.",
)
@file_option(
    OUTPUT,
    "--report",
    metavar="REPORT.html",
    help="Write a report to look at: one file that needs no network.",
)
@flagged_table(OUTPUT)
@flag(
    OUTPUT,
    "--overwrite",
    help="Write over a result or report that is there already.",
)
@shown_shapes(OUTPUT)
@file_option(
    LONG,
    "--checkpoint",
    metavar="FOLDER",
    help="Keep what has been computed in a folder, so that the run can go on after a kill.",
)
@flag(
    LONG,
    "--resume",
    help="Go on from the checkpoint, or begin one if there is none. Its folder, if not given, is called after the result.",
)
@option(
    LONG,
    "--checkpoint-every",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=30,
    help="Time between writes, of which a kill loses the last at most.",
)
@flag(
    LONG,
    "--keep-checkpoint",
    help="Leave the checkpoint in place when the result is written.",
)
@general_options
def fit(**options: Any) -> None:
    """Recover a signal from a file of covariates and responses.

    DATA is an .npz, MATLAB (.mat), HDF5 (.h5, .hdf5), .csv, .parquet or .zarr file that holds covariates A, one sample per row or
    one pattern per sample, and responses y; or a .npy or .tif file with the covariates, beside --responses. The responses are
    squared magnitudes, y = (a·x)² plus noise; up to the share given by --contamination of the samples may be wrong in any way.
    Responses with several columns, or frames, are those of as many signals.
    """
    asked = as_request(FitRequest, options)
    asked.check_outputs()
    out, see = asked.result, screen()
    names = {
        "covariates_name": asked.covariates_name,
        "responses_name": asked.responses_name,
        "transpose": asked.transpose,
    }
    with open_samples(asked.data, asked.responses, **names) as samples:
        stored = rp.rows.as_source(samples.covariates)
        _check_image(asked.image_shape, stored.shape[1])
        responses = asked.responses_of(samples)
        _check_detector(asked.detector_shape, responses)
        model = asked.model(stored.shape[0])
        labels = None if asked.groups is None else read_labels(asked.groups)
        see.say(f"{shown(asked.data)}: {samples.description}")
        say_costs(see, model, stored, asked.folder)
        with _kept(asked, _settings(model, labels), stored, responses) as rows:
            # With a checkpoint nobody else can be writing: its folder is locked.
            sweep_leftovers(out, older_than=0.0 if asked.resume else STALE)
            progress = Progress(model, rows)
            with see.watching("fitting", progress.state, progress.left):
                model.fit(rows, responses, groups=labels)
            diagnostics = keep_result(asked, model, rows, samples, responses)
            note_written(out)
        if asked.flagged is not None:
            count = write_flagged(asked.flagged, diagnostics)
    see.facts(facts_of_one(model, diagnostics) if isinstance(diagnostics, FitDiagnostics) else facts_of_many(model))
    see.say(f"result: {shown(out)}")
    if asked.flagged is not None:
        see.say(f"{count} samples treated as bad: {shown(asked.flagged)}")
    if asked.report is not None:
        keep_report(asked.report, diagnostics, out)
        see.say(f"report: {shown(asked.report)}")
    if any(check.severe for check in model_checks(model)):
        click.get_current_context().exit(MODEL_FAILS)
    if not np.all(model.converged_):
        click.get_current_context().exit(UNSETTLED)


@contextmanager
def _kept(
    asked: FitRequest, settings: dict[str, Any], rows: rp.rows.RowSource, responses: np.ndarray[Any, Any]
) -> Iterator[rp.rows.RowSource]:
    """The rows, with their passes kept in a folder if there is one; an interruption says how to go on."""
    folder = asked.folder
    if folder is None:
        try:
            yield rows
        except KeyboardInterrupt as stop:
            if written():
                raise
            raise KeyboardInterrupt(
                f"nothing was written; a run that can go on where it was interrupted: {command_line()} --resume"
            ) from stop
        return
    every, resume, keep = asked.checkpoint_every, asked.resume, asked.keep_checkpoint
    try:
        with checkpointed(folder, settings, rows, responses, interval=every, resume=resume, keep=keep) as remembered:
            yield remembered
    except KeyboardInterrupt as stop:
        if written():
            raise
        again = command_line() if resume else f"{command_line()} --resume"
        raise KeyboardInterrupt(f"the passes so far are in {shown(folder)}; to go on: {again}") from stop


def _check_image(shape: tuple[int, int] | None, unknowns: int) -> None:
    if shape is not None and shape[0] * shape[1] != unknowns:
        raise click.UsageError(
            f"--image-shape {shape[0]}x{shape[1]} has {shape[0] * shape[1]} pixels, but the covariates have {unknowns} "
            "columns, one per pixel."
        )


def _check_detector(shape: tuple[int, ...] | None, responses: np.ndarray[Any, Any]) -> None:
    if shape is None:
        return
    said = f"--detector-shape {'x'.join(map(str, shape))}"
    if responses.ndim == 2:
        raise click.UsageError(
            f"{said} is for the samples of one signal, and there are {responses.shape[1]}; frames of many signals bring their "
            "shape along. Leave it out, or choose a signal with --column."
        )
    if math.prod(shape) != len(responses):
        raise click.UsageError(f"{said} has {math.prod(shape)} readings, but there are {len(responses)} samples.")


def _settings(model: rp.RobustPhaseRetrieval, labels: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """What a checkpoint must have been made with: the parameters, and the labels of groups if there are any."""
    settings: dict[str, Any] = model.get_params(deep=False)
    if labels is not None:
        settings["groups"] = hashlib.sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()
    return settings
