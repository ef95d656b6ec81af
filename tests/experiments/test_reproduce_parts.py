"""Intervals, adversaries, verdicts, the page, and what a reproduction keeps."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import simulate
from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce import CLAIMS, ReproductionInterrupted, Verdict, reproduce, write_page
from robustphase.experiments.reproduce import run as run_module
from robustphase.experiments.reproduce.attacks import KAPPA, adversary, gradient_adversary, scale_adversary, side
from robustphase.experiments.reproduce.run import EXPERIMENTS, choose, slug
from robustphase.experiments.reproduce.stats import (
    Curve,
    Estimate,
    bootstrap,
    growth,
    mean,
    share,
    size_for_error,
    size_for_success,
    slope,
)
from robustphase.experiments.reproduce.verdict import Experiment, chart, judge, series
from robustphase.paper import pair_samples
from robustphase.simulate import CleanSample

# Intervals


def test_shares_have_the_interval_of_clopper_and_pearson():
    none, all_ = share(0, 10), share(10, 10)
    assert (none.value, none.low) == (0.0, 0.0)
    assert_allclose(none.high, 1 - 0.005**0.1)
    assert_allclose(all_.low, 0.005**0.1)
    assert all_.high == 1.0


def test_the_interval_of_a_slope_covers_as_often_as_it_says():
    # 600 intervals at 99 percent: 6 misses are expected, more than 17 have probability below 1e-4.
    rng = np.random.default_rng(0)
    x = np.arange(4.0)
    found = [slope(x, -0.5 * x + rng.standard_normal((6, 4)) + rng.standard_normal((6, 1))) for _ in range(600)]
    misses = sum(not each.meets(-0.5, -0.5) for each in found)
    assert 0 < misses <= 17


def test_one_value_has_no_interval_and_equal_ones_have_one_without_width():
    assert mean([3.0]) == Estimate(3.0, -np.inf, np.inf)
    assert mean([3.0] * 4) == Estimate(3.0, 3.0, 3.0)


def test_an_estimate_that_is_not_a_number_agrees_with_nothing():
    nothing = Estimate(float("nan"), float("nan"), float("nan"))
    assert not nothing.meets(-np.inf, np.inf)


def test_a_bootstrap_repeats_and_refuses_what_is_mostly_undefined():
    values = [np.random.default_rng(1).standard_normal(50)]
    first, second = (bootstrap(values, lambda s: float(s[0].mean())) for _ in range(2))
    assert first == second
    assert first.low < first.value < first.high
    assert np.isnan(bootstrap(values, lambda s: float("nan")).low)


def test_needed_sizes_are_where_the_error_meets_the_goal():
    sizes = (100, 200, 400, 800)
    errors = np.tile(np.array(sizes, float) ** -0.5, (5, 1))
    assert_allclose(size_for_error(sizes, errors, 0.06), 0.06**-2, rtol=1e-9)
    assert np.isnan(size_for_error(sizes, errors, 1e-6))
    assert np.isnan(size_for_error(sizes, 1 / errors, 20.0)), "errors that grow are never enough"


def test_needed_sizes_for_success_interpolate_between_shares():
    sizes = (10, 20, 40)
    errors = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]], float)
    # A quarter succeeds at 20 and all at 40: half at the third of the way, in logarithms.
    assert_allclose(size_for_success(sizes, errors, 0.5), 20 * 2 ** (1 / 3))
    assert np.isnan(size_for_success(sizes, np.zeros((4, 3)), 0.5))
    assert np.isnan(size_for_success(sizes, np.ones((4, 3)), 0.5))


def test_curves_that_never_come_near_the_goal_have_no_exponent():
    curve = Curve(5, (10, 20), np.ones((4, 2)))
    found = growth([curve, curve._replace(n=10)], 1e-3)
    assert np.isnan(found.exponent.low)


# Adversaries


def clean_sample(m=4000, n=4, noise_mean=0.0, seed=0):
    oracle = simulate.SampleOracle(
        simulate.random_signal(n, seed=1), contamination=0.0, attack="none", noise_mean=noise_mean, seed=seed
    )
    A, y = oracle.draw(m)
    return CleanSample.of(A, y, oracle.truth, 0.5, noise_mean)


def rewritten(sample, attack, budget):
    rewrite = attack.attack(sample, budget, np.random.default_rng(0))
    A, y = sample.A.copy(), sample.y.copy()
    if rewrite.A is not None:
        A[rewrite.rows] = rewrite.A
    y[rewrite.rows] = rewrite.y
    assert len(rewrite.rows) == len(set(rewrite.rows.tolist())) <= budget
    return A, y


def gradients(A, y, truth, paired):
    if not paired:
        s = A @ truth
        return ((s**2 - y) * s)[:, None] * A
    b, c, upsilon = pair_samples(A, y)
    gap = (b @ truth) * (c @ truth) - upsilon
    return gap[:, None] * (b * (c @ truth)[:, None] + c * (b @ truth)[:, None])


@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_mirrored_gradients_keep_their_squares_and_move_the_mean(paired):
    sample, budget = clean_sample(noise_mean=3.0 if paired else 0.0), 80
    u = side(sample)
    before = gradients(sample.A, sample.y, sample.truth, paired) @ u
    A, y = rewritten(sample, gradient_adversary("mirror", paired=paired), budget)
    after = gradients(A, y, sample.truth, paired) @ u
    assert_allclose(np.abs(after), np.abs(before), atol=1e-9)
    top = np.sort(before)[-budget:]
    assert_allclose(after.sum(), before.sum() - 2 * top.sum(), rtol=1e-9)


@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_pushed_gradients_add_a_fixed_share_to_the_variance(paired):
    sample = clean_sample(noise_mean=3.0 if paired else 0.0)
    u = side(sample)
    before = gradients(sample.A, sample.y, sample.truth, paired) @ u
    for budget in (20, 200):
        A, y = rewritten(sample, gradient_adversary("push", paired=paired), budget)
        after = gradients(A, y, sample.truth, paired) @ u
        changed = ~np.isclose(after, before, rtol=1e-9, atol=1e-9)
        assert changed.sum() == budget
        assert_allclose(after[changed], -KAPPA * before.std() / np.sqrt(budget / len(before)), rtol=1e-6)
        assert_allclose((after[changed] ** 2).sum() / len(before), KAPPA**2 * before.var(), rtol=1e-6)


def test_the_scale_adversary_mirrors_the_estimates_of_procedure_3():
    sample, budget = clean_sample(noise_mean=3.0), 40
    direction = sample.unit
    for attack, numbers in (
        (scale_adversary(), lambda b, c, upsilon: upsilon * (b * c).sum(axis=1)),
        (scale_adversary(direction), lambda b, c, upsilon: upsilon * (b @ direction) * (c @ direction)),
    ):
        before = numbers(*pair_samples(sample.A, sample.y))
        after = numbers(*pair_samples(*rewritten(sample, attack, budget)))
        assert_allclose(np.abs(after), np.abs(before), atol=1e-9)
        assert_allclose(after.sum(), before.sum() - 2 * np.sort(before)[-budget:].sum(), rtol=1e-9)


def test_adversaries_are_found_by_name():
    assert adversary("decoy", paired=True) == "decoy"
    assert adversary("mirror", paired=True).name == "mirror"


# Verdicts and the page


def a_verdict(**changes):
    fields = {
        "claim": "Theorem 9.9",
        "statement": "The error is at most |x*| [in a_norm].",
        "measured": "0.5",
        "interval": "99%: [0.4, 0.6]",
        "verdict": "holds",
        "part": "a part",
        "data": {"figure": chart("t", "x", "y", series("s", [1, 2], [3, 4]))},
    }
    return Verdict(**{**fields, **changes})


def test_a_measurement_agrees_with_the_paper_or_with_its_correction_or_with_neither():
    assert judge(True, False, "A1") == ("holds", None)
    assert judge(False, True, "A1") == ("erratum", "A1")
    assert judge(False, False, "A1") == ("fails", None)
    assert judge(False) == ("fails", None)
    assert judge(False, True, None) == ("fails", None)


def test_a_verdict_says_what_it_is():
    assert str(a_verdict()) == "Theorem 9.9, a part: holds. 0.5 (99%: [0.4, 0.6])"
    assert str(a_verdict(verdict="erratum", erratum="A3", part="")).startswith("Theorem 9.9: erratum A3. ")
    assert Verdict(**json.loads(json.dumps(a_verdict().to_dict()))) == a_verdict()


def test_verdicts_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="verdict must be one of 'holds', 'fails', 'erratum', got 'true'"):
        a_verdict(verdict="true")
    with pytest.raises(ValueError, match="Name an erratum exactly if"):
        a_verdict(verdict="erratum")
    with pytest.raises(ValueError, match="Name an erratum exactly if"):
        a_verdict(erratum="A1")


def test_the_page_is_a_table_in_which_text_means_itself():
    verdicts = [
        a_verdict(seconds=61.0, data={"processor_seconds": 120.0}),
        a_verdict(verdict="erratum", erratum="A3"),
        a_verdict(verdict="erratum", erratum="B18"),
        a_verdict(verdict="fails"),
    ]
    page = write_page(verdicts, heading="Quick version.")
    assert page.startswith(
        "Quick version. Of 4 statements 1 hold, 2 are errata that the measurement confirms, and 1 fail."
    )
    assert "The run took 1.0 minutes, and 2.0 minutes of processor time." in page
    rows = page.splitlines()[4:]
    assert len(rows) == 4
    assert "at most \\|x\\*\\| \\[in a\\_norm\\]." in rows[0]
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
    assert "erratum [A3](errata.md#a3)" in rows[1]
    assert "erratum [B18](errata.md#class-b)" in rows[2]
    assert rows[3].endswith("| fails | 0 |")


# What a reproduction runs and keeps


def test_every_experiment_has_a_name_of_its_own_and_every_claim_is_in_the_quick_version():
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(set(map(slug, names))) == len(names)
    assert {experiment.claim for experiment in choose(None, quick=True)} == set(CLAIMS)
    for claim in ("Theorem 3.1", "Theorem 3.2", "Theorem 3.3", "Theorem B.1", "Theorem B.2", "Theorem B.3"):
        assert claim in CLAIMS
    for claim in ("Lemma 2.1", "Lemma 2.3", "Algorithm 4", "Table 1, samples", "Table 1, error"):
        assert claim in CLAIMS


def test_claims_are_chosen_by_name_or_part():
    assert [e.part for e in choose("theorem b.1", quick=True)] == ["in the ball", "pairing"]
    assert [e.part for e in choose("Theorem B.1", quick=False)] == ["in the ball", "samples needed", "pairing"]
    # A part asked for by name is run even if the quick version leaves it out.
    assert [e.name for e in choose(["Theorem B.1, samples needed"], quick=True)] == ["Theorem B.1, samples needed"]
    with pytest.raises(ValueError, match=r"there is no claim 'Theorem 9'. Choose from: Lemma 2.1, Lemma 2.2"):
        choose(["Lemma 2.1", "Theorem 9"], quick=True)
    with pytest.raises(ValueError, match="claims is empty"):
        choose([], quick=True)


@pytest.fixture
def small(monkeypatch):
    """Three experiments that take no time; the list says which were run."""
    ran = []

    def experiment(part, verdict):
        def run(pool, quick):
            ran.append(part)
            pool.map(abs, [1, 2])
            if part == "third" and "stop" in ran:
                raise KeyboardInterrupt
            return a_verdict(claim="Lemma 0", part=part, verdict=verdict)

        return Experiment("Lemma 0", part, run, in_quick=part != "second")

    chosen = (experiment("first", "holds"), experiment("second", "fails"), experiment("third", "holds"))
    monkeypatch.setattr(run_module, "EXPERIMENTS", chosen)
    return ran


def test_a_reproduction_returns_verdicts_and_writes_them_with_their_drawings(small, tmp_path):
    said = []
    folder = tmp_path / "made" / "here"
    verdicts = reproduce(folder=folder, draw=lambda v: f"<svg>{v.part}</svg>", progress=said.append, workers=1)
    assert [verdict.part for verdict in verdicts] == ["first", "second", "third"]
    assert (folder / "lemma-0-second.svg").read_text() == "<svg>second</svg>"
    assert verdicts[1].figure == str(folder / "lemma-0-second.svg")
    assert verdicts[0].data["processor_seconds"] >= 0
    assert said[0] == "1 of 3: Lemma 0, first"
    kept = json.loads((folder / "verdicts-full.json").read_text(encoding="utf-8"))
    assert [fields["part"] for fields in kept["verdicts"]] == ["first", "second", "third"]
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".svg", ".svg", ".svg"]


def test_the_quick_version_leaves_out_what_it_may(small):
    assert [verdict.part for verdict in reproduce(quick=True, workers=1)] == ["first", "third"]


def test_an_interrupted_reproduction_keeps_what_is_finished_and_continues(small, tmp_path):
    small.append("stop")
    with pytest.raises(ReproductionInterrupted, match=r"after 2 of 3 experiments.*resume=True continues") as caught:
        reproduce(folder=tmp_path, workers=1)
    assert [verdict.part for verdict in caught.value.verdicts] == ["first", "second"]
    small.clear()
    verdicts = reproduce(folder=tmp_path, workers=1, resume=True)
    assert small == ["third"]
    assert [verdict.part for verdict in verdicts] == ["first", "second", "third"]
    small.clear()
    reproduce(folder=tmp_path, workers=1)
    assert small == ["first", "second", "third"], "without resume everything is run anew"


def test_a_file_that_cannot_be_continued_is_refused(small, tmp_path):
    with pytest.raises(ValueError, match="resume=True needs the folder"):
        reproduce(workers=1, resume=True)
    path = tmp_path / "verdicts-full.json"
    for text in (
        "{",
        "[]",
        json.dumps({"format": 1, "version": "0.0.0", "verdicts": []}),
        json.dumps({"format": 1, "version": run_module._version(), "verdicts": [{"claim": "x"}]}),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"verdicts-full.json cannot be continued .* Remove it"):
            reproduce(folder=tmp_path, workers=1, resume=True)


def test_processes_give_the_same_results_in_the_same_order():
    tasks = list(range(-6, 6))
    pool = Pool(2)
    assert pool.map(abs, tasks) == Pool(1).map(abs, tasks) == [abs(task) for task in tasks]
    assert pool.processor_seconds >= 0
    for wrong in (0, True, 1.5):
        with pytest.raises(ValueError, match="workers must be a positive integer or None"):
            Pool(wrong)


def test_the_package_offers_what_the_command_line_needs():
    # By name: the function of the same name hides the package as an attribute.
    package = importlib.import_module("robustphase.experiments.reproduce")
    assert set(package.__all__) == {"CLAIMS", "ReproductionInterrupted", "Verdict", "reproduce", "write_page"}
