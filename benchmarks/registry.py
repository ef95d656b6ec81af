"""All benchmarks: the question each answers, what it costs, the pages it writes, and the rooms of the library these speak of.

A page is stale when the code of its rooms is no longer the code that it was measured with (:mod:`benchmarks.stale`), so rooms are
those that decide the figures, and no more: the model checks do not move a signal, the report moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Rooms = tuple[str, ...]

MEANS: Rooms = ("rows/*", "!rows/opening.py", "!rows/replay.py", "!rows/watching.py", "means")
#: What decides a recovered signal.
ENGINE: Rooms = (
    "population",
    "!population/plane.py",
    *MEANS,
    "spectra",
    "likelihood",
    "problem.py",
    "initialise",
    "descend",
    "recover",
    "!recover/certificate.py",
    "!recover/drift.py",
    "!recover/indistinguishable.py",
    "!recover/influence.py",
    "!recover/model",
    # What an answer is heard again for.
    "recover/model/power.py",
    "recover/model/limits.py",
    "recover/model/residuals.py",
)
_ESTIMATOR: Rooms = (
    "estimator",
    "!estimator/advice.py",
    "!estimator/history.py",
    "!estimator/progress.py",
    "!estimator/scoring.py",
    "!estimator/standard_errors.py",
    "!estimator/streaming.py",
)
#: How a fit comes to its signal from A and y, for pages that look at nothing else.
SIGNAL: Rooms = (*ENGINE, *_ESTIMATOR)
#: What decides all that a fit says: the signal, whether it converged, what the checks find.
FIT: Rooms = (*ENGINE, "recover", *_ESTIMATOR)


@dataclass(frozen=True)
class Benchmark:
    """One entry.

    Attributes
    ----------
    question : str
        What it answers.
    minutes : float
        Time with the default options on a machine with two cores that does nothing else.
    pages, pictures : tuple of str
        Files below docs that it writes; pages of Markdown begin with a stamp, pictures are stamped in the store.
    rooms : tuple of str
        What the figures speak of, as :func:`benchmarks.digest.files_of` reads it.
    cores : {1, 2, "alone"}
        Cores that it keeps busy; ``"alone"`` if it measures times, so that nothing may run beside it.
    """

    name: str
    question: str
    minutes: float
    rooms: Rooms
    pages: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    cores: Literal[1, 2, "alone"] = 1


def _pages(*names: str) -> tuple[str, ...]:
    return tuple(f"_generated/{name}.md" for name in names)


def _pictures(*names: str) -> tuple[str, ...]:
    return tuple(f"_static/{name}" for name in names)


_ALL = (
    # Times and ratios of times: `make bench`.
    Benchmark("passes", "How near are the passes over the rows to reading them?", 1, ("rows/*",), cores="alone"),
    Benchmark("means", "What does a robust mean cost over a plain one?", 3, MEANS, cores="alone"),
    Benchmark(
        "costs", "What do start and fit cost over plain Wirtinger flow, and how does it grow?", 5, FIT, cores="alone"
    ),
    Benchmark(
        "dashboard",
        "How fast is the whole fit, beside other methods, and is it slower than before?",
        1.5,
        FIT,
        _pages("performance"),
        _pictures("performance.svg"),
        cores="alone",
    ),
    Benchmark(
        "cost_model",
        "Do the passes of a fit foretell its time, in memory and on a cluster?",
        1,
        (*FIT, "rows/dask"),
        _pages("cost_model"),
        cores="alone",
    ),
    # Accuracy of the engine.
    Benchmark(
        "recovery",
        "Who survives which attack, how accurately?",
        2.4,
        (*FIT, "simulate"),
        _pages("recovery"),
        cores=2,
    ),
    Benchmark(
        "complex_recovery",
        "The same for complex data.",
        2.6,
        (*FIT, "simulate"),
        _pages("complex_recovery"),
        cores=2,
    ),
    Benchmark(
        "accuracy",
        "Is the fit exact without noise, efficient without attack, the same in other units?",
        1,
        (*SIGNAL, "simulate"),
        _pages("accuracy"),
        cores=2,
    ),
    Benchmark(
        "start",
        "How near do the candidates of the start come under every attack?",
        0.6,
        (*MEANS, "spectra", "likelihood", "problem.py", "initialise", "simulate"),
        _pages("start"),
        cores=2,
    ),
    Benchmark(
        "two_signals",
        "How near do attacks in the name of a second signal come to what no method survives?",
        1.2,
        (*ENGINE, "experiments/information.py"),
        _pages("two_signals"),
        cores=2,
    ),
    Benchmark(
        "large_samples",
        "Does the error fall like one over the root of m, as far as one looks?",
        1,
        SIGNAL,
        _pages("large_samples"),
        _pictures("large_samples.svg"),
    ),
    Benchmark(
        "constants", "What are the engine's empirical constants worth?", 2.5, ENGINE, _pages("constants"), cores=2
    ),
    Benchmark(
        "red_team",
        "What is the worst attack that a search finds, beside what no method avoids?",
        3,
        (*FIT, "simulate/adversaries/parametric.py", "experiments/red_team.py", "experiments/evolution.py"),
        _pages("red_team"),
        cores=2,
    ),
    # Other methods.
    Benchmark(
        "comparison",
        "Which method survives which attack, in what time?",
        4.8,
        (*SIGNAL, "simulate", "baselines", "experiments/compare.py"),
        _pages("comparison"),
        cores=2,
    ),
    Benchmark(
        "rivals",
        "Where are the methods of the literature better than ours?",
        1.2,
        (*SIGNAL, "baselines"),
        _pages("rivals"),
        cores=2,
    ),
    Benchmark("adversaries", "What does every attack do to plain methods?", 0.3, ("simulate",), _pages("adversaries")),
    # Noise, designs, instruments.
    Benchmark(
        "counts",
        "How far above informed maximum likelihood are errors with photon counts and cameras?",
        2.5,
        (*SIGNAL, "estimator/standard_errors.py", "baselines", "simulate"),
        _pages(
            "counts_clean_real",
            "counts_clean_complex",
            "counts_bad_real",
            "counts_bad_complex",
            "counts_attacks_real",
            "counts_camera_real",
            "counts_camera_complex",
            "counts_errors_real",
        ),
        cores=2,
    ),
    Benchmark(
        "before_after",
        "What do a plain method and ours make of the same bad data?",
        0.1,
        (*SIGNAL, "baselines", "cli/demo_data.py"),
        pictures=_pictures("before_after.png"),
    ),
    Benchmark(
        "noise_picture",
        "Does the fitted variance follow the measured one?",
        0.1,
        SIGNAL,
        pictures=_pictures("noise_variance.svg"),
    ),
    Benchmark(
        "designs",
        "Which designs of instruments work by default?",
        2.5,
        (*FIT, "simulate"),
        _pages("designs", "concentrated"),
        cores=2,
    ),
    Benchmark(
        "diffraction",
        "Is a picture recovered from coded diffraction with junk readings, and from how many masks?",
        2.8,
        (*FIT, "simulate/diffraction.py"),
        _pages("diffraction", "diffraction_masks"),
        _pictures("diffraction.png"),
        cores="alone",
    ),
    Benchmark(
        "transmission",
        "Is a transmission matrix recovered behind a faulty camera, and does it focus?",
        1,
        FIT,
        _pages("transmission"),
        _pictures(
            "transmission_gaussian.png",
            "transmission_phase-only.png",
            "transmission_votes.svg",
            "transmission_light.svg",
        ),
        cores="alone",
    ),
    Benchmark(
        "micromirror",
        "The same with on/off patterns and 8 bits.",
        0.7,
        FIT,
        _pages("micromirror"),
        _pictures("micromirror.png"),
        cores="alone",
    ),
    Benchmark(
        "large_patterns",
        "Are thousands of on/off mirrors within reach, without their second moment being told?",
        0.3,
        FIT,
        _pages("large_patterns"),
        cores="alone",
    ),
    Benchmark("published_focus", "Is the focus of a published setting reached?", 2, FIT, cores="alone"),
    Benchmark("many", "What do many signals at once save, and are the answers the same?", 2, FIT, cores="alone"),
    # Trust.
    Benchmark(
        "wrong_worlds",
        "Is the library ever wrong in silence, or alarmed without a cause?",
        1.8,
        (*FIT, "simulate"),
        _pages("wrong_worlds", "check_limits"),
        cores=2,
    ),
    Benchmark(
        "trust_pictures",
        "What does every check of the model look at?",
        0.3,
        FIT,
        _pages("trust_pictures"),
        _pictures(
            *(
                f"trust_{name}.svg"
                for name in (
                    "background",
                    "covariance",
                    "curvature",
                    "dependence",
                    "drift",
                    "evenness",
                    "explained",
                    "flagged",
                    "gain",
                    "length",
                    "mean",
                    "neighbours",
                    "noise",
                    "power",
                    "rival",
                    "samples",
                    "scale",
                    "signal",
                    "turn",
                    "variety",
                    "votes",
                )
            )
        ),
    ),
    # Robust statistics.
    Benchmark(
        "means_accuracy",
        "How far from the truth are robust means?",
        1.5,
        MEANS,
        _pages("means_accuracy"),
        _pictures("means_accuracy.svg", "means_tails.svg", "means_round.svg"),
        cores=2,
    ),
    Benchmark("mean_peers", "How do robust means of other packages compare?", 0.2, MEANS, _pages("mean_peers")),
    Benchmark(
        "spectra",
        "How accurate are robust covariances and leading eigenvectors?",
        2,
        (*MEANS, "spectra"),
        _pages("spectra"),
        cores="alone",
    ),
    Benchmark(
        "statistics",
        "Robust covariance, outliers and aggregation beside scikit-learn?",
        1.5,
        (*MEANS, "spectra", "statistics"),
        _pages("statistics"),
        cores="alone",
    ),
    Benchmark(
        "statistics_pictures",
        "What do outliers do to distances, components and aggregates?",
        0.1,
        (*MEANS, "spectra", "statistics"),
        pictures=_pictures("statistics_envelope.svg", "statistics_pca.svg", "statistics_aggregate.svg"),
    ),
    # The paper.
    Benchmark(
        "reproduce",
        "Do the statements of the paper hold?",
        2.5,
        (*ENGINE, "paper.py", "experiments/reproduce"),
        _pages("reproduce"),
        cores=2,
    ),
    # The plan of an experiment: hours, in parts of some minutes (--minutes).
    Benchmark("calibrate_plan", "Which constants foretell errors, samples and costs?", 300, SIGNAL),
    # Data that are large or far away.
    Benchmark(
        "disk", "What do fits of files cost over reading them?", 2, ("rows", "!rows/dask", "files"), cores="alone"
    ),
    Benchmark(
        "dask_overhead",
        "What does a pass on a cluster cost beyond its arithmetic?",
        1,
        ("rows/*", "rows/dask"),
        _pages("dask_overhead"),
        cores="alone",
    ),
    Benchmark(
        "dask_scale",
        "What does the client of a cluster need for very many samples?",
        1.5,
        ("rows/*", "rows/dask", *SIGNAL),
        _pages("dask_scale"),
        cores="alone",
    ),
    # What may go wrong: `make nightly`. They write no pages and end with code 1 if anything does.
    Benchmark(
        "fuzz_files",
        "Does any damaged file or checkpoint hang, crash, raise what it should not, or change an answer in silence?",
        10,
        ("rows", "files", *FIT),
    ),
    Benchmark("kill_fits", "Do fits that are killed go on to the same bits, or refuse other data?", 3, ("files", *FIT)),
    Benchmark(
        "kill_workers", "Do fits end right whose workers are killed?", 15, ("rows/*", "rows/dask", *SIGNAL), cores=2
    ),
)
BENCHMARKS: Mapping[str, Benchmark] = {one.name: one for one in _ALL}
#: What `python -m benchmarks` runs when nothing is named.
PERFORMANCE = ("passes", "means", "costs", "dashboard")


def owner_of(page: str) -> Benchmark:
    """The benchmark that writes a page or draws a picture."""
    for one in _ALL:
        if page in one.pages or page in one.pictures:
            return one
    raise ValueError(f"no benchmark writes {page}: enter it in benchmarks/registry.py")


def listing() -> str:
    """All benchmarks as a table for a person."""
    lines = [f"{'name':20s} {'minutes':>7s} {'cores':>6s}  question; pages"]
    for one in _ALL:
        written = ", ".join(page.rpartition("/")[2] for page in (*one.pages, *one.pictures[:2]))
        more = f" and {len(one.pictures) - 2} pictures" if len(one.pictures) > 2 else ""
        lines.append(
            f"{one.name:20s} {one.minutes:7g} {one.cores:>6}  {one.question}{f' [{written}{more}]' if written else ''}"
        )
    total = total_minutes(one for one in _ALL if one.pages or one.pictures)
    return "\n".join([*lines, f"all pages: {total:.0f} minutes on two cores"])


def total_minutes(benchmarks: Iterable[Benchmark]) -> float:
    """Minutes on two cores, where benchmarks that need one core share them."""
    return sum(one.minutes / 2 if one.cores == 1 else one.minutes for one in benchmarks)
