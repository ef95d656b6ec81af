"""Every plot draws what the fit holds, into the axes it is given."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import robustphase as rp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from robustphase import plot  # noqa: E402
from robustphase.plot.axes import CYCLIC, MARKS, MOST  # noqa: E402
from robustphase.plot.detector import binned_widths  # noqa: E402
from robustphase.plot.samples import CAUSES, samples_of  # noqa: E402
from robustphase.report import FitDiagnostics  # noqa: E402


@contextmanager
def new_axes(layout=None):
    axes = Figure(layout=layout).subplots()
    yield axes
    axes.figure.savefig("/dev/null", format="svg")  # what cannot be drawn fails here


@pytest.fixture
def ax():
    with new_axes() as axes:
        yield axes


@pytest.fixture(scope="module")
def world():
    return rp.simulate.make_world(n=12, m=600, contamination=0.1, attack="huge", seed=1)


@pytest.fixture(scope="module")
def model(world):
    return rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)


@pytest.fixture(scope="module")
def kept_file(model, world):
    return FitDiagnostics.of(model, world.A, world.y, truth=world.truth)


@pytest.fixture(scope="module")
def complex_fit():
    world = rp.simulate.make_world(n=12, m=600, contamination=0.05, attack="decoy", field="complex", seed=0)
    return world, rp.RobustPhaseRetrieval(0.05).fit(world.A, world.y)


@pytest.fixture(scope="module")
def counting():
    rng = np.random.default_rng(0)
    A, truth = rng.standard_normal((1500, 10)), 2 * rng.standard_normal(10)
    y = rng.poisson((A @ truth) ** 2).astype(float)
    return A, y, rp.RobustPhaseRetrieval(0.05, noise="poisson").fit(A, y)


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(0)
    A, truth, labels = rng.standard_normal((900, 10)), rng.standard_normal(10), np.repeat(np.arange(30), 30)
    y = (A @ truth) ** 2 + 0.1 * rng.standard_normal(900)
    wrong = labels < 3
    y[wrong] = rng.permutation(y[wrong])
    return rp.RobustPhaseRetrieval(0.15).fit(A, y, groups=labels)


def drawn(ax, name):
    """The points under a mark."""
    mark = MARKS[name]
    lines = [line for line in ax.lines if to_hex(line.get_color()) == mark.colour and line.get_marker() == mark.marker]
    return np.concatenate([line.get_xydata() for line in lines]) if lines else np.empty((0, 2))


CALLS = {
    "signal": lambda fit, ax, A, y: plot.signal(fit, ax=ax),
    "picture": lambda fit, ax, A, y: plot.signal(fit, shape=(3, 4), ax=ax),
    "start": lambda fit, ax, A, y: plot.signal(fit, part="initial_signal", ax=ax),
    "predictions": lambda fit, ax, A, y: plot.predictions(fit, A, y, ax=ax),
    "residuals": lambda fit, ax, A, y: plot.residuals(fit, A, y, ax=ax),
    "residuals on a detector": lambda fit, ax, A, y: plot.residuals(fit, A, y, shape=(20, 30), ax=ax),
    "residuals of frames": lambda fit, ax, A, y: plot.residuals(fit, A, y, shape=(6, 10, 10), ax=ax),
    "flags": lambda fit, ax, A, y: plot.flags(fit, A, y, ax=ax),
    "flags on a detector": lambda fit, ax, A, y: plot.flags(fit, A, y, shape=(6, 10, 10), ax=ax),
    "weights": lambda fit, ax, A, y: plot.weights(fit, A, y, ax=ax),
    "weights on a detector": lambda fit, ax, A, y: plot.weights(fit, A, y, shape=(20, 30), ax=ax),
    "history": lambda fit, ax, A, y: plot.history(fit, ax=ax),
    "candidates": lambda fit, ax, A, y: plot.candidates(fit, ax=ax),
    "noise": lambda fit, ax, A, y: plot.noise(fit, A, y, ax=ax),
    "certificate": lambda fit, ax, A, y: plot.certificate(fit, ax=ax),
    "model check": lambda fit, ax, A, y: plot.model_check(fit, ax=ax),
}


def test_a_plot_draws_into_the_axes_it_is_given_and_returns_them(model, world, case):
    for name, call in CALLS.items():
        with case(name), new_axes("constrained") as ax:
            before = len(ax.figure.axes)
            assert call(model, ax, world.A, world.y) is ax
            assert ax.has_data()
            # A scale beside a picture is the only thing that may be added.
            assert len(ax.figure.axes) <= before + 1


def test_diagnostics_of_a_fit_are_drawn_without_their_data(kept_file, case):
    for name, call in CALLS.items():
        if name != "model check":
            with case(name), new_axes() as ax:
                assert call(kept_file, ax, None, None) is ax
                assert ax.has_data()


def test_complex_signals_can_be_drawn(complex_fit, case):
    world, model = complex_fit
    for name, call in CALLS.items():
        with case(name), new_axes() as ax:
            assert call(model, ax, world.A, world.y).has_data()


def test_without_axes_a_figure_is_made(model):
    ax = plot.history(model)
    assert ax.figure.number in pyplot.get_fignums()
    pyplot.close(ax.figure)


def test_a_model_and_its_diagnostics_say_the_same(model, world, kept_file):
    ours, theirs = samples_of(model, world.A, world.y), samples_of(kept_file)
    for name in ("weights", "responses", "codes"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_allclose(ours.deviations, theirs.deviations, rtol=1e-9)


def test_weights_stand_where_they_are_with_the_mark_of_their_cause(model, world, ax):
    plot.weights(model, world.A, world.y, ax=ax)
    codes = samples_of(model, world.A, world.y).codes
    for code, name in enumerate(CAUSES):
        rows = np.flatnonzero(codes == code)
        np.testing.assert_array_equal(drawn(ax, name), np.column_stack((rows, model.weights_[rows])).reshape(-1, 2))
    assert (codes > 0).sum() >= 50


def test_without_data_rejected_samples_have_no_cause(model, ax):
    plot.weights(model, ax=ax)
    assert len(drawn(ax, "kept")) + len(drawn(ax, "rejected")) == 600
    assert len(drawn(ax, "rejected")) == model.flag_samples().sum()


def test_flags_on_a_detector_are_shares_of_frames(model, ax):
    plot.flags(model, shape=(6, 10, 10), ax=ax)
    np.testing.assert_allclose(ax.images[0].get_array(), model.flag_samples().reshape(6, 10, 10).mean(axis=0))


def test_residuals_on_a_detector_are_medians_of_what_is_a_number(kept_file, ax):
    values = np.array(samples_of(kept_file).deviations)
    plot.residuals(kept_file, shape=(6, 10, 10), ax=ax)
    np.testing.assert_allclose(ax.images[0].get_array(), np.median(np.abs(values.reshape(6, 10, 10)), axis=0))


def test_points_outside_and_points_left_out_are_counted(kept_file, ax):
    plot.residuals(kept_file, ax=ax)
    low, high = ax.get_ylim()
    found = samples_of(kept_file)
    outside = int(((found.deviations < low) | (found.deviations > high)).sum())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert outside
    assert (
        sum(int(label.split("(")[1].split()[0].replace(",", "")) for label in labels if "outside" in label) == outside
    )


def test_no_plot_draws_more_points_than_an_eye_can_tell_apart(ax):
    m = 3 * MOST
    rng = np.random.default_rng(0)
    A, truth = rng.standard_normal((m, 3)), np.ones(3)
    model = rp.RobustPhaseRetrieval(0.1).fit(A, (A @ truth) ** 2 + rng.standard_normal(m))
    plot.weights(model, ax=ax)
    assert sum(line.get_xydata().shape[0] for line in ax.lines) <= MOST
    assert f"of {int((~model.flag_samples()).sum()):,} drawn" in ax.get_legend().get_texts()[0].get_text()


def test_the_signal_is_turned_to_the_truth(model, world, ax):
    plot.signal(model, truth=world.truth, ax=ax)
    shown = drawn(ax, "recovered")[:, 1]
    assert np.linalg.norm(shown - world.truth) == pytest.approx(rp.distance(model.signal_, world.truth))
    np.testing.assert_array_equal(drawn(ax, "truth")[:, 1], world.truth)


def test_phases_have_a_cyclic_colour(complex_fit, ax):
    world, model = complex_fit
    plot.signal(model, truth=world.truth, shape=(3, 4), ax=ax)
    colours = matplotlib.colormaps[CYCLIC]([0.0, 1.0])
    np.testing.assert_allclose(colours[0], colours[1], atol=0.1)
    picture = ax.images[0].get_array()
    assert picture.shape == (3, 4, 4)
    # Brighter means larger.
    brightness, modulus = np.max(picture[..., :3], axis=-1).ravel(), np.abs(model.signal_)
    assert brightness[np.argmax(modulus)] > brightness[np.argmin(modulus)]


def test_the_errors_are_those_of_the_fit(kept_file, ax):
    plot.certificate(kept_file, ax=ax)
    named = {tick.get_text(): line.get_xdata()[0] for tick, line in zip(ax.get_yticklabels(), ax.lines, strict=False)}
    assert next(iter(named)) == "expected, from noise"
    assert named["expected, from noise"] == kept_file.expected_error
    assert named["certificate, worst case"] == kept_file.certificate
    assert named["true, answer"] == pytest.approx(kept_file.true_error)


def test_a_certificate_without_bound_is_written_and_not_drawn(kept_file, ax):
    from dataclasses import replace

    plot.certificate(replace(kept_file, certificate=np.inf), ax=ax)
    assert "no bound" in [text.get_text() for text in ax.texts]


def test_the_model_check_lists_every_check(model, ax):
    plot.model_check(model, ax=ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [check.name for check in model.model_check_.checks]
    marks = sum(line.get_xydata().shape[0] for line in ax.lines)
    assert marks == len(model.model_check_.checks)


def test_histories_leave_out_what_a_logarithm_cannot_show(model, ax):
    plot.history(model, "gradient_norm", ax=ax)
    values = np.array([record.gradient_norm for record in model.history_])
    assert drawn(ax, "recovered").shape[0] == (np.isfinite(values) & (values > 0)).sum()


def test_candidates_of_a_start_are_drawn_by_score_and_distance(world, ax):
    start = rp.spectral_init(world.A, world.y, 0.1)
    plot.candidates(start, ax=ax)
    np.testing.assert_allclose(drawn(ax, "recovered"), [[0.0, start.scores[0]]], atol=1e-6)
    np.testing.assert_allclose(drawn(ax, "start")[:, 1], start.scores[1:])


def test_the_noise_model_has_the_mass_of_the_kept_samples(model, world, ax):
    plot.noise(model, world.A, world.y, ax=ax)
    curve = next(line for line in ax.lines if to_hex(line.get_color()) == MARKS["model"].colour)
    edges = ax.patches[0].get_data().edges
    mass = np.trapezoid(curve.get_ydata(), curve.get_xdata()) / (edges[1] - edges[0])
    assert mass == pytest.approx((~model.flag_samples()).sum(), rel=0.1)


def test_counts_have_a_variance_curve_that_their_residuals_follow(counting, ax):
    A, y, model = counting
    plot.variance(model, A, y, ax=ax)
    curve = next(line for line in ax.lines if to_hex(line.get_color()) == MARKS["model"].colour)
    points = drawn(ax, "kept")
    expected = np.interp(points[:, 0], *curve.get_data())
    # Root mean squares of 62 residuals are known to 9 percent; six such deviations allow for the thin tail of small counts.
    large = points[:, 0] > 4
    assert large.sum() >= 10
    np.testing.assert_allclose(points[large, 1], expected[large], rtol=0.54)
    plot.noise(model, A, y, ax=Figure().subplots())
    assert np.nanmedian(np.abs(samples_of(model, A, y).deviations)) == pytest.approx(0.67, abs=0.15)


def test_even_noise_has_no_curve(model, world):
    with pytest.raises(ValueError, match="the same width everywhere"):
        plot.variance(model, world.A, world.y)


def test_widths_in_bins_are_weighted_root_mean_squares():
    centres, rms = binned_widths(np.arange(50.0), np.repeat([1.0, 3.0], 25), np.ones(50))
    np.testing.assert_allclose(centres, [12, 37])
    np.testing.assert_allclose(rms, [1, 3])
    assert binned_widths(np.ones(3), np.ones(3), np.zeros(3))[0].size == 0


def test_groups_are_marked_as_the_fit_judges_them(grouped, ax):
    plot.groups(grouped, ax=ax)
    bad = drawn(ax, "rejected")[:, 0]
    np.testing.assert_array_equal(bad, np.flatnonzero(grouped.flag_groups()))
    assert set(range(3)) <= set(bad.tolist())
    assert len(drawn(ax, "kept")) + len(bad) == 30


def test_many_signals_are_drawn_one_at_a_time(ax):
    rng = np.random.default_rng(0)
    A, truths = rng.standard_normal((500, 6)), rng.standard_normal((6, 3))
    y = (A @ truths) ** 2 + 0.1 * rng.standard_normal((500, 3))
    model = rp.RobustPhaseRetrieval(0.05).fit(A, y)
    plot.signal(model, truth=truths[:, 2], index=2, ax=ax)
    assert np.linalg.norm(drawn(ax, "recovered")[:, 1] - truths[:, 2]) < 0.2
    for name in ("predictions", "residuals", "weights", "flags", "noise"):
        assert getattr(plot, name)(model, A, y, index=1, ax=Figure().subplots()).has_data()
    for name in ("certificate", "model_check"):
        assert getattr(plot, name)(model, index=1, ax=Figure().subplots()).has_data()


def test_one_colour_and_one_shape_for_every_kind():
    kinds = [name for name in MARKS if name not in ("rejected", "recovered")]
    assert len({MARKS[name].colour for name in kinds}) == len({MARKS[name].marker for name in kinds}) == len(kinds)


def test_what_cannot_be_drawn_says_what_to_do(case, model):
    for call, said in [
        (lambda m: plot.signal(m, shape=(5, 5)), r"shape=\(5, 5\) must be a height and a width whose product is 12"),
        (lambda m: plot.signal(m, part="phase"), "part must be"),
        (lambda m: plot.signal(m, part="truth"), "needs the truth"),
        (lambda m: plot.signal(m, part="standard_errors"), "no standard errors"),
        (lambda m: plot.residuals(m), "pass A and y"),
        (
            lambda m: plot.residuals(m, np.ones((4, 12)), np.ones(4)),
            "the fit has 600 samples, but A and y have 4 and 4",
        ),
        (lambda m: plot.flags(m, shape=(7, 7)), "49 readings but the fit 600 samples"),
        (lambda m: plot.history(m, "speed"), "quantity must be one of score, moved"),
        (lambda m: plot.groups(m), "no groups"),
        (lambda m: plot.history(rp.RobustPhaseRetrieval()), "after fit"),
    ]:
        with case(said), pytest.raises(ValueError, match=said):
            call(model)


def test_without_matplotlib_the_error_names_the_command(model, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'robustphase\[plot\]'"):
        plot.history(model)


@pytest.fixture(scope="module")
def many_fits():
    """Twelve signals behind rows of which the first fifteen are bad for all."""
    rng = np.random.default_rng(2)
    A, X = rng.standard_normal((400, 6)), rng.standard_normal((6, 12))
    Y = (A @ X) ** 2 + 0.1 * rng.standard_normal((400, 12))
    A[:15] = rng.standard_normal((15, 6))
    return rp.RobustPhaseRetrieval(0.1).fit(A, Y)


def test_every_signal_is_in_the_distribution_of_a_figure(many_fits, case):
    checks = [check for one in many_fits.model_check_ for check in one.checks]
    for figure, values in {
        "expected_error": [check.figure for check in checks if check.name == "expected error"],
        "certificate": many_fits.certificate_,
        "rejected": many_fits.flag_samples().mean(axis=0),
        "contamination": many_fits.contamination_,
        "noise_scale": many_fits.noise_scale_,
        "noise_mean": many_fits.noise_mean_,
    }.items():
        with case(figure), new_axes() as ax:
            assert plot.distribution(many_fits, figure, ax=ax) is ax
            assert sum(patch.get_data().values.sum() for patch in ax.patches) == 12
            again = Figure().subplots()
            plot.distribution(many_fits, figure, shape=(3, 4), ax=again)
            np.testing.assert_allclose(again.images[0].get_array(), np.reshape(values, (3, 4)))


def test_rows_that_are_bad_for_all_signals_stand_out(many_fits, ax):
    plot.rows(many_fits, ax=ax)
    lines = {line.get_label(): line for line in ax.lines}
    bad = np.flatnonzero(many_fits.row_weights_ < 0.5)
    assert bad.size >= 12
    np.testing.assert_array_equal(lines["rejected"].get_xdata(), bad)
    np.testing.assert_allclose(lines["rejected"].get_ydata(), many_fits.flag_samples()[bad].mean(axis=1))


def test_plots_of_many_signals_say_what_they_need(many_fits, model):
    with pytest.raises(ValueError, match="the fit is of one"):
        plot.rows(model)
    with pytest.raises(ValueError, match="the fit is of one"):
        plot.distribution(model)
    with pytest.raises(ValueError, match="figure must be one of"):
        plot.distribution(many_fits, "wishes")
    with pytest.raises(ValueError, match="12 signals; give"):
        plot.distribution(many_fits, shape=(5, 5))


def test_logarithmic_axes_have_ticks_however_narrow_they_are(case):
    from robustphase.plot.axes import logarithmic

    for ends in ((0.9, 1.3), (0.02, 0.05), (3.0, 4.0), (1.0, 900.0), (1e-9, 1e9)):
        with case(ends), new_axes() as ax:
            ax.plot(ends, ends)
            logarithmic(ax.xaxis)
            low, high = ax.get_xlim()
            inside = [tick for tick in ax.get_xticks() if low <= tick <= high]
            assert 2 <= len(inside) <= 10
