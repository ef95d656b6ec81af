"""All methods against all adversaries: who survives, how accurately, in what time.

``python -m benchmarks comparison [--runs runs.csv] [--seeds 1] [--minutes 9]`` writes docs/_generated/comparison.md. With
``--runs`` finished runs are kept, so it may be interrupted, or cut into parts with ``--minutes``; only what is missing is run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import robustphase as rp
from benchmarks.markdown import counted
from benchmarks.options import call
from benchmarks.render import publish
from robustphase.experiments.compare import Comparison, ComparisonInterrupted, Group, compare, table
from robustphase.experiments.methods import OURS, known_methods
from robustphase.formatting import short_number

PAGE = "_generated/comparison.md"
LEVELS = (0.05, 0.1, 0.2)


def page(comparison: Comparison, seeds: int) -> str:
    """The tables and what they say."""
    attacks = len({run.attack for run in comparison.runs} - {"none"})
    first = comparison.runs[0]
    return "\n".join(
        (
            f"{attacks} adversaries and none at all, {counted(seeds, 'seed')} each, n = {first.n}, m = {first.m}, Student-t "
            f"noise of σ = {first.noise_std:g}‖x*‖². Survived: relative error at most 0.25. Ratio: error over that of least "
            "squares started at the truth and told which samples are clean. Time: processor time on one thread, over that of "
            "plain Wirtinger flow in the same world. Median and worst ratio are over all runs, lost ones included.",
            "",
            comparison.markdown(),
            verdict(comparison),
            "",
            f"Survivors of {counted(seeds, 'run')} at contamination {', '.join(f'{level:g}' for level in LEVELS)}; a tick "
            "where all survive, bold where a rival has more survivors than ours:",
            "",
            comparison.attack_table(),
        )
    )


def verdict(comparison: Comparison) -> str:
    """Where ours is not the best, plainly."""
    lines = []
    losses = comparison.losses()
    if losses:
        lines.append("**Attacks that a rival survives and ours does not:**")
        lines.append("")
        lines += [
            f"* `{loss.world.attack}` at {loss.world.contamination:g}, seed {loss.world.seed}: our error is {loss.error:.2f}; "
            f"survived by {', '.join(loss.rivals)}."
            for loss in losses
        ]
    else:
        lines.append("No attack that a rival survives defeats ours.")
    lines.append("")
    groups = comparison.summary(("contamination", "method"))
    for level in LEVELS:
        rivals = [g for g in groups if g.key["contamination"] == level and g.key["method"] not in (*OURS, "oracle")]
        ours = next(g for g in groups if g.key == {"contamination": level, "method": OURS[0]})
        lines.append(f"* At {level:g}: {_beside(ours, rivals)}")
    return "\n".join(lines)


def _beside(ours: Group, rivals: list[Group]) -> str:
    most = max(rivals, key=lambda g: (g.survived, -g.median_ratio))
    median, worst = min(rivals, key=lambda g: g.median_ratio), min(rivals, key=lambda g: g.worst_ratio)
    return (
        f"ours survives {ours.survived} of {ours.runs}, median ratio {short_number(ours.median_ratio)}, worst "
        f"{short_number(ours.worst_ratio)}; of the rivals {most.key['method']} survives most ({most.survived}), the best "
        f"median has {median.key['method']} ({short_number(median.median_ratio)}), the best worst case {worst.key['method']} "
        f"({short_number(worst.worst_ratio)})."
    )


def hardest(comparison: Comparison, method: str = OURS[0], count: int = 10) -> str:
    """The runs in which a method is farthest from the oracle."""
    runs = sorted((r for r in comparison.runs if r.method == method), key=lambda r: -r.ratio)[:count]
    return table(
        ["attack", "contamination", "seed", "error", "ratio"],
        [[r.attack, f"{r.contamination:g}", str(r.seed), f"{r.error:.3f}", short_number(r.ratio)] for r in runs],
    )


def run(
    seeds: int = 1, runs: str = "", minutes: float = np.inf, methods: tuple[str, ...] = tuple(known_methods())
) -> None:
    """Compare; ``runs`` is a .csv file that keeps finished runs, and after ``minutes`` it stops for the same command to go on."""
    deadline = time.monotonic() + 60.0 * minutes

    def tick(done: int, total: int, text: str) -> None:
        if done % 20 == 0:
            print(f"{done}/{total} worlds", flush=True)
        if time.monotonic() > deadline:
            raise KeyboardInterrupt

    attacks = ["none", *rp.simulate.ADVERSARIES]
    try:
        comparison = compare(methods, attacks, LEVELS, seeds=seeds, out=Path(runs) if runs else None, progress=tick)
    except ComparisonInterrupted as interrupt:
        print(interrupt)
        return
    publish(PAGE, page(comparison, seeds), seeds=[0, seeds])
    print(comparison.markdown(), verdict(comparison), hardest(comparison), sep="\n\n")


if __name__ == "__main__":
    call(run, "comparison", sys.argv[1:])
