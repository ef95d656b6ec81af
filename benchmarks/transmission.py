"""A transmission matrix behind a faulty camera: recovered by intensities alone, then used to focus light.

``python -m benchmarks transmission`` simulates the experiment twice, with Gaussian patterns and with phase-only ones, prints
what was found, and writes docs/_generated/transmission.md and the pictures of the page, docs/_static/transmission_*.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.options import call
from benchmarks.pictures import encode_png, grey_levels
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture
from robustphase.atomic import write_text, writing
from robustphase.report.charts import Axis, Series, histogram_chart, scatter_chart, standalone_svg

SIDE, MODES, PATTERNS, SEED = 16, 64, 1536, 40
#: Photoelectrons of a mean reading in the middle of the camera, of the read noise (standard deviation), and of saturation.
MEAN, READ_NOISE, FULL_WELL = 400.0, 5.0, 1600.0
#: The speckle fades away from the middle: distance, in pixels, at which its mean has fallen to 1/e.
FADE = 6.7
#: Constant offset, and how far the background drifts up and down around it; each pixel sees between half and all of the drift.
OFFSET, DRIFT = 60.0, 10.0
#: Share of patterns that were not the ones displayed, and of readings of each pixel that a spike hits.
MISPLACED, SPIKES = 0.02, 0.04
#: Pixels that are dead (offset and read noise only), stuck at zero, and stuck at the full well.
DEAD, STUCK_DARK, STUCK_BRIGHT = 4, 2, 2
#: What the fit is told.
CONTAMINATION = 0.1
#: A pattern is given up when more than this share of the usable pixels flag it.
VOTE = 0.5
#: Most steps of a Wirtinger flow; and of how many pixels one is fitted by least squares that was told the truth.
MOST_STEPS, SPARSE = 200, 8
#: Row and column of the pixel whose focus is shown, in a dim corner.
TARGET = (1, 2)
#: Magnification and spacing of the pictures.
ZOOM, GAP = 11, 10
STATIC = DOCS / "_static"
VARIANTS = ("gaussian", "phase-only")
OURS, FLOW = "robustphase, all pixels at once", "Wirtinger flow, pixel by pixel"


@dataclass(frozen=True)
class Experiment:
    """What the laboratory knows, patterns (m, n) and readings (m, p); and what only the simulation knows."""

    patterns: np.ndarray
    readings: np.ndarray
    matrix: np.ndarray
    misplaced: np.ndarray
    spikes: np.ndarray
    saturated: np.ndarray
    lost: np.ndarray

    @property
    def bad(self) -> np.ndarray:
        """Readings that do not belong to their pattern, shape (m, p)."""
        return self.misplaced[:, np.newaxis] | self.spikes | self.saturated


def draw_patterns(kind: str, m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Fields in front of the medium, one per row: complex Gaussian, or of unit modulus as a phase-only modulator makes them."""
    if kind == "phase-only":
        return np.exp(2j * np.pi * rng.random((m, n)))
    return rp.simulate.gaussian_design(m, n, field="complex", seed=rng)


def envelope() -> np.ndarray:
    """Mean photoelectrons of each pixel."""
    along = np.arange(SIDE) - (SIDE - 1) / 2
    return (MEAN * np.exp(-(along[:, np.newaxis] ** 2 + along**2) / FADE**2)).ravel()


def simulate(kind: str, seed: int = SEED) -> Experiment:
    """The experiment with all its faults."""
    rng = np.random.default_rng(seed)
    p = SIDE**2
    matrix = rp.simulate.gaussian_design(p, MODES, field="complex", seed=rng)
    matrix *= np.sqrt(envelope() / MODES)[:, np.newaxis]
    displayed = draw_patterns(kind, PATTERNS, MODES, rng)
    light = np.abs(displayed @ matrix.T) ** 2

    time = np.linspace(0, 1, PATTERNS)
    drift = DRIFT * np.sin(2 * np.pi * (1.3 * time + rng.random())) * (0.5 + 0.5 * time)
    background = OFFSET + np.outer(drift, rng.uniform(0.5, 1.0, p))
    electrons = rng.poisson(light + background) + READ_NOISE * rng.standard_normal(light.shape)

    spikes = rng.random(light.shape) < SPIKES
    electrons[spikes] += FULL_WELL * rng.uniform(0.2, 1.0, int(spikes.sum()))
    saturated = electrons >= FULL_WELL
    readings = np.round(np.clip(electrons, 0, FULL_WELL))

    lost = rng.choice(p, DEAD + STUCK_DARK + STUCK_BRIGHT, replace=False)
    dead, dark, bright = np.split(lost, (DEAD, DEAD + STUCK_DARK))
    readings[:, dead] = np.round(OFFSET + READ_NOISE * rng.standard_normal((PATTERNS, dead.size)))
    readings[:, dark], readings[:, bright] = 0.0, FULL_WELL

    recorded, misplaced = displayed.copy(), np.zeros(PATTERNS, bool)
    misplaced[rng.choice(PATTERNS, round(MISPLACED * PATTERNS), replace=False)] = True
    recorded[misplaced] = draw_patterns(kind, int(misplaced.sum()), MODES, rng)
    return Experiment(recorded, readings, matrix, misplaced, spikes, saturated, np.isin(np.arange(p), lost))


class Answer(NamedTuple):
    """Recovered rows (p, n), and the seconds it took."""

    rows: np.ndarray
    seconds: float


def fit_all(patterns: np.ndarray, readings: np.ndarray) -> tuple[rp.RobustPhaseRetrieval, float]:
    """All pixels at once."""
    began = perf_counter()
    with warnings.catch_warnings():
        # That lost pixels do not settle is expected; they are told apart below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = rp.RobustPhaseRetrieval(CONTAMINATION, noise_mean="unknown").fit(patterns, readings)
    return model, perf_counter() - began


def usable_pixels(model: rp.RobustPhaseRetrieval) -> np.ndarray:
    """Pixels with a signal above their noise, in an answer that settled: a decision from the fit alone."""
    energy = np.linalg.norm(model.signal_, axis=1) ** 2
    return model.converged_ & (model.certificate_ < 1) & (energy > model.noise_scale_)


def wirtinger(patterns: np.ndarray, readings: np.ndarray) -> Answer:
    """Plain Wirtinger flow, pixel by pixel, after the offset was taken off: a dark frame would show it."""
    began = perf_counter()
    rows = [rp.baselines.wirtinger_flow(patterns, column - OFFSET, max_iter=MOST_STEPS).signal for column in readings.T]
    return Answer(np.array(rows), perf_counter() - began)


def informed(experiment: Experiment) -> Answer:
    """Least squares from the truth on the intact readings only, for some of the pixels; NaN for the others."""
    began = perf_counter()
    rows = np.full_like(experiment.matrix, np.nan)
    for k in np.flatnonzero(~experiment.lost)[::SPARSE]:
        kept = ~experiment.bad[:, k]
        flow = rp.baselines.wirtinger_flow(
            experiment.patterns[kept],
            experiment.readings[kept, k] - OFFSET,
            start=experiment.matrix[k],
            max_iter=MOST_STEPS,
        )
        rows[k] = flow.signal
    return Answer(rows, perf_counter() - began)


def correlations(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """|cosine| between recovered and true rows: blind to the phase of a row, which intensities cannot tell."""
    sizes = np.linalg.norm(rows, axis=1) * np.linalg.norm(matrix, axis=1)
    return np.abs(np.vecdot(rows, matrix)) / np.maximum(sizes, np.finfo(float).tiny)


def focusing_fields(rows: np.ndarray, kind: str) -> np.ndarray:
    """Inputs that focus on each pixel, of energy n: the conjugate row, or its phases where only phases can be set."""
    if kind == "phase-only":
        return np.exp(-1j * np.angle(rows))
    sizes = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    return np.sqrt(rows.shape[1]) * rows.conj() / sizes


def focus(matrix: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Light on all pixels (columns) for each field (rows)."""
    return np.abs(fields @ matrix.T) ** 2


def enhancement(matrix: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Light on each pixel when its focus is asked for, over the mean of the speckle there."""
    peaks = np.abs(np.vecdot(fields.conj(), matrix)) ** 2
    return peaks / np.linalg.norm(matrix, axis=1) ** 2


class Verdict(NamedTuple):
    """Share of the usable pixels that flag each pattern (m,), and the lines of the table of flags."""

    votes: np.ndarray
    lines: list[str]


def judge(experiment: Experiment, model: rp.RobustPhaseRetrieval, usable: np.ndarray) -> Verdict:
    """Flags against what the simulation knows, in the pixels that were found usable."""
    flags = model.flag_samples()[:, usable]
    spikes, saturated = experiment.spikes[:, usable], experiment.saturated[:, usable]
    bad, rows = experiment.bad[:, usable], experiment.misplaced
    votes = flags.mean(axis=1)
    given_up = votes > VOTE
    clipped = saturated & ~spikes & ~rows[:, np.newaxis]
    hits = given_up & rows
    lines = [
        f"| lost pixels ({int(experiment.lost.sum())} of {experiment.lost.size}) | "
        f"{_share(~usable[experiment.lost])} | {_share(~usable[~experiment.lost])} |",
        f"| misplaced patterns ({int(rows.sum())} of {rows.size}), by the vote of the pixels | "
        f"{_share(given_up[rows])} | {_share(given_up[~rows])} |",
        f"| readings hit by a spike ({spikes.mean():.1%}) | {_share(flags[spikes])} | |",
        f"| readings clipped without a spike ({clipped.mean():.1%}) | {_share(flags[clipped])} | |",
        f"| readings of misplaced patterns ({rows.mean():.1%}) | {_share(flags[rows])} | |",
        f"| all bad readings ({bad.mean():.1%}) | {_share(flags[bad])} | {_share(flags[~bad])} |",
    ]
    print(
        f"readings: precision {bad[flags].mean():.3f}, recall {flags[bad].mean():.3f}; patterns: precision "
        f"{hits.sum() / max(int(given_up.sum()), 1):.3f}, recall {hits.sum() / rows.sum():.3f}"
    )
    return Verdict(votes, lines)


def _share(flags: np.ndarray) -> str:
    return f"{flags.mean():.1%}"


def amplitude_tile(light: np.ndarray, brightest: float) -> np.ndarray:
    """One picture of the camera, amplitudes so that the speckle around a focus can be seen; NaN is mid-grey."""
    grey = grey_levels(np.sqrt(light.reshape(SIDE, SIDE)), 0.0, float(np.sqrt(brightest)))
    framed = np.pad(np.kron(grey, np.ones((ZOOM, ZOOM), np.uint8)), 1, constant_values=0)
    return np.pad(framed, GAP // 2, constant_values=255)


def panel(
    experiment: Experiment, kind: str, answers: list[tuple[np.ndarray, np.ndarray]], target: int, seed: int = SEED
) -> np.ndarray:
    """Above: the camera before shaping and with the focus of each answer. Below: the enhancement at each known pixel.

    An answer is its rows, and which of them it claims to know; the last one is the truth and sets the greys.
    """
    matrix = experiment.matrix
    unshaped = draw_patterns(kind, 1, MODES, np.random.default_rng(seed + 1))
    above = [focus(matrix, unshaped)[0]]
    below = [enhancement(matrix, np.repeat(unshaped, len(matrix), axis=0))]
    for rows, known in answers:
        fields = focusing_fields(rows, kind)
        above.append(focus(matrix, fields[[target]])[0])
        below.append(np.where(known, enhancement(matrix, fields), np.nan))
    lines = [np.hstack([amplitude_tile(light, float(line[-1].max())) for light in line]) for line in (above, below)]
    return np.vstack(lines)


class Outcome(NamedTuple):
    """One experiment for the page: lines of a table, flags, panel, and the share of the possible focus that answers reach."""

    lines: list[str]
    verdict: Verdict
    picture: np.ndarray
    shares: dict[str, np.ndarray]
    misplaced: np.ndarray


def conduct(kind: str) -> Outcome:
    """Simulate, recover, focus, and say how it went."""
    experiment = simulate(kind)
    alive = ~experiment.lost
    model, seconds = fit_all(experiment.patterns, experiment.readings)
    usable = usable_pixels(model)
    answers = {
        OURS: Answer(model.signal_, seconds),
        FLOW: wirtinger(experiment.patterns, experiment.readings),
        "least squares told which readings are intact": informed(experiment),
        "the true matrix": Answer(experiment.matrix, 0.0),
    }
    ideal = enhancement(experiment.matrix, focusing_fields(experiment.matrix, kind))
    lines, shares = [], {}
    for name, answer in answers.items():
        shown = alive & np.isfinite(answer.rows).all(axis=1)
        rows, matrix = answer.rows[shown], experiment.matrix[shown]
        found, gain = correlations(rows, matrix), enhancement(matrix, focusing_fields(rows, kind))
        shares[name] = gain / ideal[shown]
        lines.append(
            f"| {kind} | {name} | {shown.sum()} | {np.median(found):.4f} | {found.min():.4f} | {np.median(gain):.1f} | "
            f"{gain.min():.1f} | {answer.seconds:.0f} |"
        )
        print(lines[-1], flush=True)
    print(f"{kind}: lost {np.flatnonzero(experiment.lost)}, not usable {np.flatnonzero(~usable)}")
    print(f"background of the usable pixels: median {np.median(model.noise_mean_[usable]):.1f}, true {OFFSET:.0f}")
    print(f"contamination: median {np.median(np.mean(model.flag_samples()[:, usable], axis=0)):.3f}")
    verdict = judge(experiment, model, usable)
    everywhere = np.ones(alive.size, bool)
    claims = [(answers[FLOW].rows, everywhere), (model.signal_, usable), (experiment.matrix, everywhere)]
    picture = panel(experiment, kind, claims, TARGET[0] * SIDE + TARGET[1])
    return Outcome(lines, verdict, picture, shares, experiment.misplaced)


def run(kinds: tuple[str, ...] = VARIANTS) -> None:
    """Both experiments; with both, the files of the page."""
    head = "| patterns | rows from | pixels | correlation, median | least | enhancement, median | least | seconds |"
    tables = [head, "|---|---|---|---|---|---|---|---|"]
    flags: list[str] = []
    for kind in kinds:
        outcome = conduct(kind)
        tables += outcome.lines
        flags += ["", f"Flags with {kind} patterns:", "", "| fault | flagged | flagged in error |", "|---|---|---|"]
        flags += outcome.verdict.lines
        print("\n".join(outcome.verdict.lines), flush=True)
        if kinds == VARIANTS:
            _draw(kind, outcome)
    if kinds == VARIANTS:
        publish("_generated/transmission.md", "\n".join(tables + flags) + "\n", seeds=[SEED, 1])


def _draw(kind: str, outcome: Outcome) -> None:
    with writing(STATIC / f"transmission_{kind}.png") as file:
        file.write(encode_png(outcome.picture))
    keep_picture("transmission", f"_static/transmission_{kind}.png")
    if kind != VARIANTS[0]:
        return
    index, misplaced, votes = np.arange(PATTERNS), outcome.misplaced, outcome.verdict.votes
    who = scatter_chart(
        [
            Series("displayed as recorded", index[~misplaced], votes[~misplaced]),
            Series("misplaced", index[misplaced], votes[misplaced]),
        ],
        title="Who flags a pattern",
        x=Axis("pattern"),
        y=Axis("share of the pixels"),
    )
    write_text(STATIC / "transmission_votes.svg", standalone_svg(who))
    light = histogram_chart(
        [(name, outcome.shares[name]) for name in (OURS, FLOW)],
        title="Light in the focus",
        x=Axis("share of what the true matrix reaches", shown=(0.0, 1.0)),
        y=Axis("pixels"),
    )
    write_text(STATIC / "transmission_light.svg", standalone_svg(light))
    for name in ("votes", "light"):
        keep_picture("transmission", f"_static/transmission_{name}.svg")


if __name__ == "__main__":
    call(run, "transmission", sys.argv[1:])
