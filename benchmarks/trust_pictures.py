"""A picture of every check of the model: what it looks at in a right world, and in a wrong one.

``python -m benchmarks trust_pictures`` draws docs/_static/trust_*.svg and writes docs/_generated/trust_pictures.md, which names
the commit and the figures that the checks found in these very data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture

N, M = 30, 3000
RIGHT, WRONG = "#4c72b0", "#c44e52"
#: Letters in a line of a title, over one of the two charts.
WIDEST = 42
Array = np.ndarray[Any, Any]


class Fitted:
    """A world, its fit, and what the pictures show of it."""

    def __init__(self, A: Array, y: Array, **told: Any) -> None:
        self.A, self.y = A, y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.model = rp.RobustPhaseRetrieval(**told).fit(A, y)
        self.predictions = np.abs(A @ self.model.signal_) ** 2
        self.residuals = y - self.predictions
        self.kept = ~self.model.flag_samples()

    def figure_of(self, name: str) -> str:
        """What a check found."""
        found = {check.name: check for check in self.model.model_check_.checks}[name]
        return f"{found.figure:.2g} (limit {found.threshold:.2g})"


def worlds() -> dict[str, Fitted]:
    """One right world, and the wrong ones that the pictures show."""
    rng = np.random.default_rng(7)
    A, x, z = rng.standard_normal((M, N)), rng.standard_normal(N), 0.1 * rng.standard_normal(M)
    x /= np.linalg.norm(x)
    other = rng.standard_normal(N)
    other = other - x * (x @ other)
    other /= np.linalg.norm(other)
    y, ramp = (A @ x) ** 2, np.linspace(0, 1, M)
    wide = A * np.geomspace(0.05, 1, N)
    twice = A.copy()
    twice[:, 1] = twice[:, 0]
    turned = np.cos(ramp * np.pi / 2) * (A @ x) + np.sin(ramp * np.pi / 2) * (A @ other)
    half = np.where((np.arange(M) < M // 2)[:, np.newaxis], A, A[:, rng.permutation(N)])
    # Made to pull at the answer: only then the samples are asked to vote.
    learned = rp.simulate.ParametricAttack(angle=0.3, by_likelihood=-1.0).adversary
    attacked = rp.simulate.make_world(N, M, contamination=0.1, attack=learned, noise_std=0.3, seed=0)
    return {
        "right": Fitted(A, y + z),
        "attacked": Fitted(attacked.A, attacked.y),
        "signal": Fitted(A, np.full(M, 0.7) + 0.0 * z),
        "samples": Fitted(A[: 3 * N // 2], y[: 3 * N // 2], contamination=0.0),
        "power": Fitted(A, 3 * np.sqrt(y) + z),
        "second mode": Fitted(A, y + 0.5 * (A @ other) ** 2 + z),
        "shuffled": Fitted(A, rng.permutation(y + z)),
        "half": Fitted(half, y + z),
        "noise": Fitted(A[:300], y[:300] + 6 * rng.standard_normal(300)),
        "background": Fitted(A, y + 2 + 0.5 * (A @ other) ** 2 + z),
        "speckle": Fitted(A, speckled := y * rng.exponential(1.0, M)),
        "even": Fitted(A, speckled, noise="additive"),
        "drift": Fitted(A, y * (1 - 0.9 * ramp) + z),
        "background drift": Fitted(A, y + 3 * ramp + z),
        "neighbours": Fitted(A, y + np.convolve(rng.standard_normal(M + 19), np.full(20, 20**-0.5), "valid")),
        "turned": Fitted(A, turned**2 + z),
        "scale": Fitted(0.5 * A, 0.25 * y + z, whiten=False),
        "mean": Fitted(A + 0.5, ((A + 0.5) @ x) ** 2 + z, whiten=False),
        "wide": Fitted(wide, (wide @ x) ** 2 + 0.1 * z, whiten=False),
        "few": Fitted(few := A[rng.integers(0, N, M)], (few @ x) ** 2 + z),
        "twice": Fitted(twice, (twice @ x) ** 2 + z),
    }


def against_predictions(axes: Axes, fit: Fitted, colour: str) -> None:
    axes.plot(fit.predictions, fit.y, ".", ms=2, alpha=0.5, color=colour)
    most = max(float(np.quantile(fit.predictions, 0.99)), 0.1)
    low, high = np.quantile(fit.y, [0.005, 0.995])
    axes.plot([0, most], [0, most], "k-", lw=1)
    axes.set(xlim=(-0.02 * most, most), ylim=(low - 0.1, high + 0.1), xlabel="prediction", ylabel="response")


def residuals_by_prediction(axes: Axes, fit: Fitted, colour: str) -> None:
    keep = fit.kept
    axes.plot(fit.predictions[keep], fit.residuals[keep], ".", ms=2, alpha=0.5, color=colour)
    axes.axhline(0, color="k", lw=1)
    axes.set(xlabel="prediction", ylabel="residual of a kept sample")


def residual_histogram(axes: Axes, fit: Fitted, colour: str) -> None:
    low, high = np.quantile(fit.residuals, [0.01, 0.99])
    axes.hist(fit.residuals, np.linspace(min(low, -0.4), max(high, 0.4), 40).tolist(), color=colour)
    axes.axvline(0, color="k", lw=1)
    axes.set(xlabel="residual", ylabel="samples")


def residuals_by_row(axes: Axes, fit: Fitted, colour: str) -> None:
    rows = np.flatnonzero(fit.kept)
    axes.plot(rows, fit.residuals[rows], ".", ms=2, alpha=0.4, color=colour)
    axes.axhline(0, color="k", lw=1)
    axes.set(xlabel="number of the row", ylabel="residual of a kept sample")


def neighbours(axes: Axes, fit: Fitted, colour: str) -> None:
    r = fit.residuals
    axes.plot(r[:-1], r[1:], ".", ms=2, alpha=0.5, color=colour)
    axes.set(xlabel="residual", ylabel="that of the next row", xlim=np.quantile(r, [0.01, 0.99]))
    axes.set_ylim(np.quantile(r, [0.01, 0.99]))


def gain_by_row(axes: Axes, fit: Fitted, colour: str) -> None:
    large = np.flatnonzero(fit.predictions > np.median(fit.predictions))
    axes.plot(large, fit.y[large] / fit.predictions[large], ".", ms=2, alpha=0.4, color=colour)
    axes.axhline(1, color="k", lw=1)
    axes.set(xlabel="number of the row", ylabel="response over prediction", ylim=(0, 3))


def strongest_direction(axes: Axes, fit: Fitted, colour: str) -> None:
    half = np.arange(fit.y.size) % 2 == 0
    r = np.clip(fit.residuals, *np.quantile(fit.residuals, [0.05, 0.95]))
    r = np.where(fit.kept, r - r[fit.kept].mean(), 0.0)
    values, vectors = np.linalg.eigh((fit.A[half].T * r[half]) @ fit.A[half])
    squares = (fit.A[~half] @ vectors[:, np.argmax(np.abs(values))]) ** 2
    axes.plot(squares, fit.residuals[~half], ".", ms=2, alpha=0.5, color=colour)
    axes.set(xlabel="|a·v|², v from the other half", ylabel="residual", ylim=np.quantile(fit.residuals, [0.01, 0.99]))


def flags(axes: Axes, fit: Fitted, colour: str) -> None:
    shares = [float(1 - fit.kept.mean()), float(fit.model.contamination)]
    axes.bar(["flagged", "stated"], shares, color=[colour, "0.7"])
    axes.set(ylim=(0, 0.6), ylabel="share of the samples")


def turning(axes: Axes, fit: Fitted, colour: str) -> None:
    s = fit.A @ fit.model.signal_
    pull = np.where(fit.kept, fit.residuals * s, 0.0)[:, np.newaxis] * fit.A
    middle = len(pull) // 2
    axes.plot(pull[:middle].mean(axis=0), pull[middle:].mean(axis=0), "o", ms=4, color=colour)
    reach = 1.1 * max(0.05, float(np.abs(pull[:middle].mean(axis=0)).max()))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="gradient, first half", ylabel="gradient, last half")


def lengths(axes: Axes, fit: Fitted, colour: str) -> None:
    axes.hist((fit.A**2).mean(axis=1), 40, color=colour)
    axes.axvline(1, color="k", lw=1)
    axes.set(xlabel="mean square of the entries of a row", ylabel="rows")


def column_means(axes: Axes, fit: Fitted, colour: str) -> None:
    axes.bar(np.arange(fit.A.shape[1]), fit.A.mean(axis=0), color=colour)
    axes.set(xlabel="column", ylabel="mean", ylim=(-0.2, 0.6))


def eigenvalues(axes: Axes, fit: Fitted, colour: str) -> None:
    axes.plot(np.linalg.eigvalsh(fit.A.T @ fit.A / len(fit.A))[::-1], "o", ms=4, color=colour)
    axes.axhline(1, color="k", lw=1)
    axes.set(xlabel="number", ylabel="eigenvalue of the covariance", ylim=(0, None))


def products(axes: Axes, fit: Fitted, colour: str) -> None:
    kernel = (fit.A[:400] @ fit.A[:400].T) ** 2 / fit.A.shape[1] ** 2
    axes.hist(kernel[np.triu_indices(400, 1)], np.linspace(0, 1.5, 60).tolist(), color=colour, log=True)
    axes.set(xlabel="|⟨a, b⟩|² of two rows, over n²", ylabel="pairs")


def curvatures(axes: Axes, fit: Fitted, colour: str) -> None:
    tangents = (fit.A @ fit.model.signal_)[:, np.newaxis] * fit.A
    values = np.linalg.eigvalsh(tangents.T @ tangents / len(tangents)) / np.sum(fit.model.signal_**2)
    axes.plot(values[::-1], "o", ms=4, color=colour)
    axes.axhline(1, color="k", lw=1)
    axes.set(xlabel="number", ylabel="curvature", ylim=(0, None))


Draw = Callable[[Axes, Fitted, str], None]
#: Checks that most right worlds have no need of, and one that has.
SELDOM = {"votes of the samples": "attacked"}
#: File, check, wrong world, what is wrong there, and the picture.
PICTURES: tuple[tuple[str, str, str, str, Draw], ...] = (
    ("signal", "signal", "signal", "a dead detector", against_predictions),
    (
        "samples",
        "samples per unknown",
        "samples",
        "1.5 samples per unknown: a perfect fit to a wrong signal",
        against_predictions,
    ),
    ("scale", "scale of the rows", "scale", "rows of half the scale", lengths),
    ("mean", "mean of the rows", "mean", "rows with a mean", column_means),
    ("covariance", "covariance of the rows", "wide", "columns of unequal scale", eigenvalues),
    ("curvature", "curvature", "twice", "a column twice", curvatures),
    ("variety", "variety of the rows", "few", "as many distinct rows as unknowns", products),
    ("power", "power of the responses", "power", "magnitudes instead of intensities", against_predictions),
    ("dependence", "residuals along the rows", "second mode", "a second mode", strongest_direction),
    ("length", "length of the signal", "speckle", "speckle: a gain of its own for every row", against_predictions),
    ("flagged", "flagged share", "half", "columns in another order in half of the rows", flags),
    ("rival", "rival signal", "half", "columns in another order in half of the rows", against_predictions),
    ("votes", "votes of the samples", "power", "magnitudes instead of intensities", against_predictions),
    ("explained", "explained responses", "shuffled", "shuffled responses", against_predictions),
    ("noise", "expected error", "noise", "noise of six signals, ten samples per unknown", against_predictions),
    ("background", "background", "background", "a background of 2", residual_histogram),
    ("evenness", "evenness of the noise", "even", 'speckle, told noise="additive"', residuals_by_prediction),
    ("neighbours", "neighbouring residuals", "neighbours", "noise that goes together over 20 rows", neighbours),
    ("drift", "drift of the background", "background drift", "a background that grows to 3", residuals_by_row),
    ("gain", "drift of the gain", "drift", "a gain that falls to a tenth", gain_by_row),
    ("turn", "drift of the signal", "turned", "the signal turns into another", turning),
)


def run() -> None:
    """Draw all pictures and write the page of their figures."""
    found = worlds()
    mpl.rcParams.update(
        {"svg.hashsalt": "robustphase", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    )
    lines = ["| check | right world | wrong world | what is wrong there |", "|---|---|---|---|"]
    for file, name, wrong, what, draw in PICTURES:
        good = found[SELDOM.get(name, "right")]
        figure = Figure(figsize=(5.6, 2.2), layout="constrained", dpi=100)
        left, right = figure.subplots(1, 2)
        draw(left, good, RIGHT)
        draw(right, found[wrong], WRONG)
        left.set_title("right world", fontsize=8)
        right.set_title(fill(what, WIDEST), fontsize=8)
        for axes in (left, right):
            for collection in (*axes.lines, *axes.collections):
                collection.set_rasterized(len(getattr(collection, "get_xdata", list)()) > 500)
        figure.savefig(DOCS / "_static" / f"trust_{file}.svg", metadata={"Date": None})
        keep_picture("trust_pictures", f"_static/trust_{file}.svg")
        lines.append(f"| {name} | {good.figure_of(name)} | {found[wrong].figure_of(name)} | {what} |")
    publish("_generated/trust_pictures.md", "\n".join(lines) + "\n", seeds=[7, 1])


if __name__ == "__main__":
    call(run, "trust_pictures", sys.argv[1:])
