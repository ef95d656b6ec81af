"""Photon counts and cameras: how far the errors lie above those of maximum likelihood that is told everything.

``python -m benchmarks counts [--seeds 3] [--tables clean bad ...] [--fields real]`` measures and writes
docs/_generated/counts_*.md, one page for each table and field. Tables:

- ``clean``: Poisson counts with a tenth of dark ones, unknown; error over that of Poisson maximum likelihood from the truth,
  beside the Cramér–Rao bound and the methods of the literature;
- ``bad``: the same with 5% and 10% of the counts replaced (swapped with others and doubled), over maximum likelihood that is
  told the clean ones;
- ``attacks``: the adversaries of ``simulate`` at 10%, from one count on;
- ``camera``: gain 2.3, read noise 4, 12 bits, an unknown offset, 3% and half of the readings saturated, 5% bad; over maximum
  likelihood that knows gain, noise and clean samples; behind standard normal rows, on/off and phase patterns;
- ``errors``: how often intervals of two standard errors hold the truth.

The reference is computed here, by SciPy's quasi-Newton method on the likelihood, with nothing of the library.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.markdown import line, table
from benchmarks.options import call
from benchmarks.render import publish

COUNTS = (0.1, 0.25, 1.0, 4.0, 25.0, 200.0)
SIZES = {"real": (50, 3000), "complex": (40, 4000)}
DARK = 0.1
#: What the fits are told.
CONTAMINATION = 0.1
#: The camera of the table.
GAIN, READ, OFFSET, BITS = 2.3, 4.0, 100.0, 12
#: What it looks at.
PATTERNS = {"real": ("gaussian", "on_off"), "complex": ("gaussian", "on_off", "phases")}
#: Adversaries whose samples cannot be computed with at all: they are dropped before any law is asked.
UNCOUNTABLE = ("nonfinite", "overflow")


def error(signal: np.ndarray, world: rp.simulate.World) -> float:
    return float(rp.distance(signal, world.truth, relative=True, conjugate=is_paired(world)))


def is_paired(world: rp.simulate.World) -> bool:
    """Whether a complex signal, which is then as good as its conjugate, stands behind real rows."""
    return np.iscomplexobj(world.truth) and not np.iscomplexobj(world.A)


def fitted(world: rp.simulate.World, level: float = CONTAMINATION, **parameters: object) -> rp.RobustPhaseRetrieval:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        field = "complex" if is_paired(world) else "auto"
        return rp.RobustPhaseRetrieval(level, field=field, **parameters).fit(world.A, world.y)


def as_real(A: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (2 or 1, m, d) of real unknowns: the real and the imaginary part of ``A x``, and the unknowns."""
    if not np.iscomplexobj(x):
        return A[np.newaxis], x
    return np.stack((np.hstack((A.real, -A.imag)), np.hstack((A.imag, A.real)))), np.concatenate((x.real, x.imag))


def maximum_likelihood(world: rp.simulate.World, used: np.ndarray, loss, nuisance: np.ndarray) -> float:
    """Error of the signal that minimises ``Σ loss(energies, nuisance)`` over the used samples, from the truth.

    ``loss`` returns values and derivatives by the energy, and the derivative of the sum by the nuisance parameter.
    """
    parts, start = as_real(world.A[used], world.truth)
    unit = np.linalg.norm(start)

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        projections = parts @ (unit * point[:-1])
        values, slopes, other = loss((projections**2).sum(axis=0), point[-1])
        gradient = 2 * unit * np.einsum("pm,pmd->d", slopes * projections, parts)
        return float(values.sum()), np.append(gradient, other)

    options = {"maxiter": 3000, "maxfun": 6000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30}
    best = minimize(objective, np.append(start / unit, nuisance), jac=True, method="L-BFGS-B", options=options).x
    found = unit * best[:-1]
    n = world.truth.size
    return error(found[:n] + 1j * found[n:] if np.iscomplexobj(world.truth) else found, world)


def poisson_reference(world: rp.simulate.World, used: np.ndarray) -> float:
    y = world.y[used]

    def loss(energies: np.ndarray, log_dark: float) -> tuple[np.ndarray, np.ndarray, float]:
        dark = np.exp(np.clip(log_dark, -30, 30))
        means = energies + dark
        slopes = 1 - y / means
        return means - y * np.log(means), slopes, float(slopes.sum() * dark)

    return maximum_likelihood(world, used, loss, np.log(max(world.noise_mean, 1e-6)))


def camera_reference(world: rp.simulate.World, used: np.ndarray) -> float:
    """Normal likelihood with the true variances; the probability of at least that for saturated readings."""
    y, top = world.y[used], 2**BITS - 1
    deviations = np.sqrt(READ**2 + 1 / 12 + GAIN * np.abs(world.A[used] @ world.truth) ** 2)
    censored = y >= top

    def loss(energies: np.ndarray, offset: float) -> tuple[np.ndarray, np.ndarray, float]:
        z = (y - energies - 100 * offset) / deviations
        tail = log_ndtr(-z)
        hazard = np.exp(-(z**2) / 2 - tail) / np.sqrt(2 * np.pi)
        values = np.where(censored, -tail, z**2 / 2)
        slopes = -np.where(censored, hazard, z) / deviations
        return values, slopes, float(100 * slopes.sum())

    return maximum_likelihood(world, used, loss, OFFSET / 100)


def cramer_rao(world: rp.simulate.World) -> float:
    """Bound of the relative error of the signal with the dark count unknown; the phase of a complex one is free."""
    parts, _ = as_real(world.A, world.truth)
    projections = np.stack((world.A @ world.truth,)) if len(parts) == 1 else None
    if projections is None:
        inner = world.A @ world.truth
        projections = np.stack((inner.real, inner.imag))
    slopes = 2 * np.einsum("pm,pmd->md", projections, parts)
    columns = np.hstack((slopes, np.ones((len(slopes), 1))))
    means = (projections**2).sum(axis=0) + world.noise_mean
    information = (columns / means[:, np.newaxis]).T @ columns
    variances = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    return float(np.sqrt(np.trace(variances[:-1, :-1])) / world.norm)


def replaced(world: rp.simulate.World, share: float, seed: int) -> tuple[rp.simulate.World, np.ndarray]:
    """The world with a share of its counts swapped with others and doubled; and which those are."""
    rng = np.random.default_rng(10_000 + seed)
    y, bad = world.y.copy(), np.zeros(world.y.size, bool)
    bad[rng.choice(y.size, int(share * y.size), replace=False)] = True
    y[bad] = 2 * rng.permutation(y)[: bad.sum()]
    return rp.simulate.World(**{**vars(world), "y": y, "touched": bad}), bad


def ratios(found: list[float]) -> str:
    return f"{np.median(found):.2f} / {np.max(found):.2f}"


def clean_table(seeds: int, field: str) -> str:
    (n, m), rows = SIZES[field], []
    for count in COUNTS:
        errors: dict[str, list[float]] = {}
        kinds = []
        for seed in range(seeds):
            world = rp.simulate.make_counts(
                n, m, mean_count=count, dark=DARK, contamination=0.0, attack="none", field=field, seed=seed
            )
            best = poisson_reference(world, np.ones(m, bool))
            auto = fitted(world)
            kinds.append(auto.noise_model_.kind)
            flow = rp.baselines.poisson_wirtinger_flow(world.A, world.y, background=world.noise_mean)
            for name, value in {
                "bound": cramer_rao(world),
                "best": best,
                "poisson": error(fitted(world, noise="poisson").signal_, world) / best,
                "auto": error(auto.signal_, world) / best,
                "fisher": error(flow.signal, world) / best,
                "plain": error(rp.baselines.wirtinger_flow(world.A, world.y).signal, world) / best,
                "truncated": error(rp.baselines.truncated_wirtinger_flow(world.A, world.y).signal, world) / best,
            }.items():
                errors.setdefault(name, []).append(value)
        rows.append(
            [field, count, float(np.median(errors["bound"])), float(np.median(errors["best"]))]
            + [ratios(errors[name]) for name in ("poisson", "auto", "fisher", "plain", "truncated")]
            + [f"{kinds.count('poisson')} of {seeds}"]
        )
        print(line(rows[-1]), flush=True)
    head = ["field", "mean count", "Cramér–Rao", "maximum likelihood", '`noise="poisson"`', '`"auto"`']
    head += ["WF, Fisher step, told the dark count", "WF", "truncated WF", "found to be counts"]
    return table(head, rows)


def bad_table(seeds: int, field: str) -> str:
    (n, m), rows = SIZES[field], []
    for count in COUNTS:
        cells: list[object] = [field, count]
        for share in (0.05, 0.1):
            found: dict[str, list[float]] = {"poisson": [], "auto": []}
            for seed in range(seeds):
                world = rp.simulate.make_counts(
                    n, m, mean_count=count, dark=DARK, contamination=0.0, attack="none", field=field, seed=seed
                )
                world, bad = replaced(world, share, seed)
                best = poisson_reference(world, ~bad)
                for noise, values in found.items():
                    values.append(error(fitted(world, noise=noise).signal_, world) / best)
            cells += [ratios(values) for values in found.values()]
        rows.append(cells)
        print(line(cells), flush=True)
    head = [
        "field",
        "mean count",
        '5% bad, `"poisson"`',
        '5% bad, `"auto"`',
        '10% bad, `"poisson"`',
        '10% bad, `"auto"`',
    ]
    return table(head, rows)


def attack_table(seeds: int, field: str) -> str:
    (n, m), rows = SIZES[field], []
    for count in (1.0, 4.0, 25.0):
        found: dict[str, list[float]] = {}
        absolute = {}
        for attack in rp.simulate.ADVERSARIES:
            if attack in UNCOUNTABLE:
                continue
            for seed in range(seeds):
                world = rp.simulate.make_counts(
                    n, m, mean_count=count, dark=DARK, contamination=0.1, attack=attack, field=field, seed=seed
                )
                best = poisson_reference(world, world.clean)
                mine = error(fitted(world, noise="poisson").signal_, world)
                found.setdefault(attack, []).append(mine / best)
                absolute[attack] = max(mine, absolute.get(attack, 0.0))
        everything = np.concatenate(list(found.values()))
        worst = sorted(found, key=lambda name: -max(found[name]))[:3]
        named = ", ".join(f"{name} {max(found[name]):.2f} (error {absolute[name]:.2f})" for name in worst)
        rows.append([field, count, f"{np.median(everything):.2f}", f"{np.mean(everything > 1.4):.0%}", named])
        print(line(rows[-1]), flush=True)
    return table(["field", "mean count", "median", "above 1.4", "worst"], rows)


def camera_table(seeds: int, field: str) -> str:
    rows: list[list[object]] = []
    for design, saturated in product(PATTERNS[field], (0.03, 0.5)):
        found, additive, best_errors, seconds, models = [], [], [], [], []
        for seed in range(seeds):
            world = rp.simulate.make_camera(
                saturated=saturated,
                gain=GAIN,
                read_noise=READ,
                offset=OFFSET,
                bits=BITS,
                field=field,
                design=design,
                seed=seed,
            )
            best = camera_reference(world, world.clean)
            begun = perf_counter()
            model = fitted(world, noise_mean="unknown", saturation=2**BITS - 1)
            seconds.append(perf_counter() - begun)
            found.append(error(model.signal_, world) / best)
            additive.append(error(fitted(world, noise_mean="unknown", noise="additive").signal_, world) / best)
            best_errors.append(best)
            models.append((model.noise_model_.shot, np.sqrt(model.noise_model_.read), model.noise_mean_))
        shot, read, offset = np.median(models, axis=0)
        told = f"{shot:.2f}, {read:.1f}, {offset:.1f}"
        share, time = f"{saturated:.0%}", f"{np.median(seconds):.1f} s"
        rows.append([design, share, float(np.median(best_errors)), ratios(found), ratios(additive), told, time])
        print(line(rows[-1]), flush=True)
    head = ["patterns", "saturated", "reference", "ours", "additive, not told of the ceiling"]
    head += ["gain, read noise, offset found", "time"]
    return table(head, rows)


def interval_table(seeds: int, field: str) -> str:
    n, m = SIZES[field]
    rows: list[list[object]] = []
    for count in (1.0, 4.0, 25.0, 200.0):
        inside, stated, true = [], [], []
        for seed in range(seeds):
            world = rp.simulate.make_counts(
                n, m, mean_count=count, dark=DARK, contamination=0.0, attack="none", seed=1000 + seed
            )
            model = fitted(world)
            errors = model.standard_errors(world.A, world.y)
            gap = model.signal_ * np.sign(model.signal_ @ world.truth) - world.truth
            inside.append(np.abs(gap) < 1.96 * errors)
            stated.append(np.sqrt(np.mean(errors**2)) * np.sqrt(n) / world.norm)
            true.append(np.linalg.norm(gap) / world.norm)
        share = float(np.mean(inside))
        rows.append([count, f"{share:.1%} of {np.size(inside)}", float(np.median(stated)), float(np.median(true))])
        print(line(rows[-1]), flush=True)
    return table(["mean count", "inside 95% intervals", "error stated", "error made"], rows)


TABLES = {
    "clean": clean_table,
    "bad": bad_table,
    "attacks": attack_table,
    "camera": camera_table,
    "errors": interval_table,
}


#: Fields of each table: standard errors are for real signals, and adversaries of complex ones take long.
FIELDS = {name: ("real",) if name in ("errors", "attacks") else tuple(SIZES) for name in TABLES}


def written(name: str, field: str, seeds: int) -> str:
    print(f"\n{name}, {field}, {seeds} seeds", flush=True)
    return f"{seeds} seeds; median / worst.\n\n{TABLES[name](seeds, field)}"


def run(
    seeds: int = 3, tables: tuple[str, ...] = tuple(TABLES), fields: tuple[str, ...] = tuple(SIZES), jobs: int = 2
) -> None:
    asked = [(name, field) for name in tables for field in fields if field in FIELDS[name]]
    pages = Parallel(n_jobs=jobs)(delayed(written)(*one, _seeds(one[0], seeds)) for one in asked)
    for (name, field), text in zip(asked, pages, strict=True):
        publish(f"_generated/counts_{name}_{field}.md", text, seeds=[0, _seeds(name, seeds)])


def _seeds(name: str, seeds: int) -> int:
    """One seed is enough for all adversaries; coverage is a share of many entries, which a few more seeds cost little."""
    return {"attacks": max(1, seeds // 3), "errors": 2 * seeds}.get(name, seeds)


if __name__ == "__main__":
    call(run, "counts", sys.argv[1:])
