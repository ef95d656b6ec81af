"""A comparison: same worlds for all, every outcome a row, interruptible, resumable."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from robustphase.experiments import Comparison, ComparisonInterrupted, compare
from robustphase.experiments.compare import table
from robustphase.experiments.methods import oracle_least_squares
from robustphase.experiments.store import Outcome, Run, Settings, WorldKey, make_run

SMALL = {"n": 8, "m": 120, "workers": 1}


def mean_direction(A, y, contamination, noise_mean_known):
    """A quick method: the leading eigenvector of the y-weighted second moment."""
    return np.linalg.eigh(A.T @ (np.clip(y, 0, 10)[:, None] * A))[1][:, -1]


def quick(attacks=("decoy", "none"), **options):
    return compare({"quick": mean_direction, "oracle": None}, attacks, [0.0, 0.1], **{**SMALL, "seeds": 2, **options})


def without_time(comparison):
    return [run._replace(seconds=0.0) for run in comparison.runs]


def a_run(method="robustphase", attack="decoy", level=0.1, seed=0, error=0.1, oracle=0.1, seconds=1.0):
    return make_run(
        method,
        WorldKey(attack, level, "student", seed),
        Settings(8, 120, 0.5, 0.0),
        Outcome(error, seconds, converged=True, message=""),
        oracle,
    )


class TestWorlds:
    def test_every_method_gets_the_same_samples_and_they_are_those_of_make_world(self):
        seen = {}

        def spy(name):
            def method(A, y, contamination, noise_mean_known):
                seen[name, contamination] = A.copy(), y.copy()
                A[:], y[:] = np.nan, np.nan  # a method that spoils its input spoils nobody else's
                return np.ones(8)

            return method

        compare({"a": spy("a"), "b": spy("b")}, "decoy", [0.1, 0.2], seeds=[5], **SMALL)
        for level in (0.1, 0.2):
            world = rp.simulate.make_world(8, 120, attack="decoy", contamination=level, seed=5)
            for name in "ab":
                assert np.array_equal(seen[name, level][0], world.A, equal_nan=True)
                assert np.array_equal(seen[name, level][1], world.y, equal_nan=True)

    def test_all_means_every_adversary_once(self):
        runs = compare({"quick": mean_direction}, ["none", "all", "decoy"], 0.1, seeds=1, **SMALL).runs
        assert [run.attack for run in runs] == ["none", *rp.simulate.ADVERSARIES]

    def test_methods_are_told_whether_the_noise_mean_is_known(self):
        told = []
        method = {"spy": lambda A, y, contamination, known: told.append(known) or np.ones(8)}
        compare(method, "none", 0.0, seeds=1, **SMALL)
        compare(method, "none", 0.0, seeds=1, noise_mean=2.0, **SMALL)
        assert told == [True, False]

    @pytest.mark.parametrize("field", ["real", "complex"])
    def test_the_oracle_solves_least_squares_on_the_clean_samples(self, field):
        for mean in (0.0, 3.0):
            world = rp.simulate.make_world(
                10, 300, attack="decoy", contamination=0.2, noise_mean=mean, field=field, seed=3
            )
            A, y = world.A[world.clean], world.y[world.clean]
            x = oracle_least_squares(A, y, world.truth, background=mean or None)
            s = A @ x
            residuals = y - np.abs(s) ** 2
            if mean:
                residuals = residuals - residuals.mean()
            # The gradient of the sum of squares vanishes.
            gradient, size = (A.conj().T @ each for each in (residuals * s, np.abs(residuals) * np.abs(s)))
            assert np.linalg.norm(gradient) < 1e-8 * np.linalg.norm(size)
            assert rp.distance(x, world.truth, relative=True) < 0.2


class TestRuns:
    def test_a_row_says_what_was_run_and_what_came_out(self):
        runs = quick(noise_mean=1.0).runs
        assert len(runs) == 2 * 2 * 2 * 2
        for run in runs:
            assert (run.n, run.m, run.noise, run.noise_mean, run.noise_std) == (8, 120, "student", 1.0, 0.5)
            assert run.ratio == pytest.approx(run.error / run.oracle_error)
            assert run.survived == (run.error <= 0.25)
            assert run.seconds >= 0
        assert all(run.ratio == pytest.approx(1.0) for run in runs if run.method == "oracle")

    @pytest.mark.parametrize(
        ("method", "words"),
        [
            (lambda A, y, c, k: 1 / 0, "ZeroDivisionError: division by zero"),
            (lambda A, y, c, k: np.ones(3), "ValueError: a method must return a signal of shape (8,), got shape (3,)"),
            (lambda A, y, c, k: np.full(8, np.nan), "ValueError: the signal holds NaN or infinite entries"),
            (lambda A, y, c, k: np.linalg.solve(np.zeros((8, 8)), A[0]), "LinAlgError: Singular matrix"),
        ],
    )
    def test_a_method_that_fails_is_lost_and_the_others_go_on(self, method, words):
        comparison = compare({"bad": method, "good": mean_direction}, "none", 0.0, seeds=2, **SMALL)
        bad = comparison.only(method="bad").runs
        assert all(run.message == words and math.isinf(run.ratio) and not run.survived for run in bad)
        assert not any(run.converged for run in bad)
        assert comparison.summary(["method"])[0].raised == 2
        assert all(math.isfinite(run.error) for run in comparison.only(method="good").runs)

    def test_a_long_message_becomes_one_line(self):
        def method(A, y, contamination, known):
            raise RuntimeError("first line\nsecond, with a comma\n" + "x" * 1000)

        (run,) = compare({"bad": method}, "none", 0.0, seeds=1, **SMALL).runs
        assert run.message.startswith("RuntimeError: first line second, with a comma xxx")
        assert len(run.message) == 300

    def test_warnings_of_convergence_are_kept_and_other_warnings_stay_inside(self):
        def method(A, y, contamination, known):
            warnings.warn("look elsewhere", UserWarning, stacklevel=1)
            warnings.warn("did not settle", ConvergenceWarning, stacklevel=1)
            return type("Answer", (), {"signal": np.ones(8), "converged": False})()

        (run,) = compare({"slow": method}, "none", 0.0, seeds=1, **SMALL).runs
        assert (run.message, run.converged) == ("did not settle", False)

    def test_ours_survives_where_the_plain_flow_is_lost_and_finds_the_level_itself(self):
        methods = ["robustphase", "robustphase-auto", "wirtinger_flow", "oracle"]
        comparison = compare(methods, ["leverage", "nonfinite", "overflow"], 0.1, n=20, m=800, seeds=1, workers=1)
        survived = {(r.method, r.attack): r.survived for r in comparison.runs}
        assert all(
            survived[method, attack] for method in methods if method != "wirtinger_flow" for attack in ("leverage",)
        )
        assert not survived["wirtinger_flow", "leverage"]
        # Rows that cannot be computed with are dropped for the rivals, as any careful user would.
        assert all(survived[method, attack] for method in methods for attack in ("nonfinite", "overflow"))


class TestParallel:
    def test_processes_give_the_rows_of_one_process_in_the_same_order(self):
        method = {"quick": lambda A, y, c, k: np.linalg.svd(A, full_matrices=False)[2][0]}
        one = compare(method, ["decoy", "none"], 0.1, seeds=2, n=8, m=120, workers=1)
        two = compare(method, ["decoy", "none"], 0.1, seeds=2, n=8, m=120, workers=2)
        assert without_time(two) == without_time(one)

    def test_an_interruption_of_processes_keeps_what_was_finished(self, tmp_path):
        def stop(done, total, text):
            raise KeyboardInterrupt

        with pytest.raises(ComparisonInterrupted) as caught:
            compare({"quick": lambda A, y, c, k: np.ones(8)}, "all", 0.1, seeds=2, n=8, m=120, workers=2, progress=stop,
                    out=tmp_path / "runs.csv")  # fmt: skip
        assert len(caught.value.partial) >= 1


class TestResume:
    def test_finished_cells_are_not_run_again(self, tmp_path):
        calls = []
        method = {"counted": lambda A, y, c, k: calls.append(c) or np.ones(8)}
        first = compare(method, "decoy", [0.0, 0.1], seeds=2, out=tmp_path / "runs.csv", **SMALL)
        assert len(calls) == 4
        again = compare(method, "decoy", [0.0, 0.1], seeds=2, out=tmp_path / "runs.csv", **SMALL)
        assert len(calls) == 4
        assert again.runs == first.runs
        compare(method, "decoy", [0.1, 0.2], seeds=3, out=tmp_path / "runs.csv", **SMALL)
        assert len(calls) == 4 + 1 + 3

    def test_a_new_method_is_added_to_old_worlds(self, tmp_path):
        out = tmp_path / "runs.csv"
        compare({"a": mean_direction}, "decoy", 0.1, seeds=2, out=out, **SMALL)
        both = compare({"a": mean_direction, "b": mean_direction}, "decoy", 0.1, seeds=2, out=out, **SMALL)
        assert [run.method for run in both.runs] == ["a", "b", "a", "b"]
        assert without_time(both.only(method="a")) == [
            run._replace(method="a") for run in without_time(both.only(method="b"))
        ]

    def test_an_interruption_keeps_what_was_finished_and_the_same_call_continues(self, tmp_path):
        out = tmp_path / "runs.csv"

        def stop(done, total, text):
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(ComparisonInterrupted, match=r"after 3 of 8 worlds.*runs\.csv") as caught:
            quick(out=out, progress=stop)
        assert len(caught.value.partial) == 6
        told = []
        complete = quick(out=out, progress=lambda done, total, text: told.append((done, total)))
        assert told == [(done, 8) for done in range(4, 9)]
        assert without_time(complete) == without_time(quick())

    def test_an_interruption_without_a_file_keeps_the_rows_too(self):
        def stop(done, total, text):
            raise KeyboardInterrupt

        with pytest.raises(ComparisonInterrupted) as caught:
            quick(progress=stop)
        assert len(caught.value.partial) == 2

    def test_a_file_cut_anywhere_is_continued(self, tmp_path):
        out = tmp_path / "runs.csv"
        complete = quick(out=out)
        data = out.read_bytes()
        for end in [*range(0, len(data) - 150, 150), 250, 251, *range(len(data) - 150, len(data), 7), len(data) - 1]:
            out.write_bytes(data[:end])
            assert without_time(quick(out=out)) == without_time(complete)
            assert out.read_text("utf-8").count("\n") == data.count(b"\n")
            assert list(tmp_path.iterdir()) == [out]

    def test_a_foreign_last_line_is_dropped(self, tmp_path):
        out = tmp_path / "runs.csv"
        complete = quick(out=out)
        for line in ("what is this\n", "what, is this", "\n", "\x00\xff,,\n"):
            data = out.read_bytes()
            out.write_bytes(data + line.encode())
            assert quick(out=out).runs == complete.runs
            assert out.read_bytes() == data

    def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_changed(self, tmp_path):
        out = tmp_path / "runs.csv"
        quick(out=out)
        lines = out.read_text("utf-8").split("\n")
        lines[4] = lines[4].replace("True", "perhaps")
        out.write_text("\n".join(lines), "utf-8")
        with pytest.raises(ValueError, match=r"line 5 of runs\.csv is not a run.*'perhaps'"):
            quick(out=out)
        assert out.read_text("utf-8") == "\n".join(lines)

    def test_a_file_of_something_else_is_refused_and_left_alone(self, tmp_path):
        out = tmp_path / "mine.csv"
        out.write_text("day,visitors\n1,12\n")
        with pytest.raises(ValueError, match=r"mine\.csv is not a file of comparisons"):
            quick(out=out)
        assert out.read_text() == "day,visitors\n1,12\n"

    def test_other_settings_are_refused_by_name(self, tmp_path):
        out = tmp_path / "runs.csv"
        quick(out=out)
        with pytest.raises(ValueError, match="m=120 there, m=130 here"):
            quick(out=out, m=130)
        with pytest.raises(ValueError, match=r"noise_mean=0\.0 there, noise_mean=1\.0 here"):
            quick(out=out, noise_mean=1.0)
        with pytest.raises(ValueError, match=r"must be a file that ends in \.csv"):
            quick(out=tmp_path / "runs.txt")

    def test_a_write_that_fails_leaves_the_file_as_it_was(self, tmp_path, monkeypatch):
        out = tmp_path / "runs.csv"
        quick(out=out)
        before = out.read_bytes()

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("robustphase.experiments.store.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            quick(attacks=("huge",), out=out)
        assert out.read_bytes() == before

    def test_two_comparisons_do_not_write_to_one_file_at_once(self, tmp_path):
        out, refused = tmp_path / "runs.csv", []

        def meanwhile(done, total, text):
            with pytest.raises(ValueError, match="in use by another comparison") as caught:
                quick(out=out)
            refused.append(caught)

        first = quick(out=out, progress=meanwhile)
        assert refused
        assert quick(out=out).runs == first.runs

    def test_numbers_survive_the_file_exactly(self, tmp_path):
        first = quick(out=tmp_path / "runs.csv")
        assert quick(out=tmp_path / "runs.csv").runs == first.runs


class TestArguments:
    def test_a_mistyped_name_gets_a_suggestion(self):
        with pytest.raises(ValueError, match=r"got 'wirtinger_flo'\. Did you mean 'wirtinger_flow'\?"):
            compare(["wirtinger_flo"], "none", 0.0, **SMALL)
        with pytest.raises(ValueError, match=r"got 'decoi'.*Did you mean 'decoy'"):
            quick(attacks=("decoi",))
        with pytest.raises(ValueError, match="Did you mean 'student'"):
            quick(noises="studnet")

    def test_contaminations_are_checked_before_anything_is_run(self):
        for level in (0.7, 5):
            with pytest.raises(ValueError, match="contamination must be a number in"):
                compare({"quick": mean_direction}, "decoy", contaminations=level, **SMALL)

    def test_nothing_to_do_is_an_error(self):
        with pytest.raises(ValueError, match="methods is empty"):
            compare([], "none", 0.0, **SMALL)
        with pytest.raises(ValueError, match="at least one value"):
            compare({"quick": mean_direction}, [], 0.0, **SMALL)
        with pytest.raises(ValueError, match="at least one value"):
            quick(seeds=0)

    def test_workers_are_checked(self):
        for workers in (0, -1, 1.5, True):
            with pytest.raises(ValueError, match="workers must be a positive integer"):
                quick(workers=workers)


class TestTables:
    def test_a_summary_counts_and_takes_medians(self):
        runs = [
            *(a_run(seed=s, error=e, seconds=4.0) for s, e in enumerate([0.1, 0.2, 0.3])),
            *(a_run("wirtinger_flow", seed=s, error=1.0, seconds=2.0 - s / 2) for s in range(3)),
            a_run("prox_linear", seed=7, error=math.inf),
        ]
        ours, plain, other = Comparison(tuple(runs)).summary(["method"])
        assert (ours.key, ours.runs, ours.survived, ours.survival) == (
            {"method": "robustphase"},
            3,
            2,
            pytest.approx(2 / 3),
        )
        assert (ours.median_ratio, ours.worst_ratio) == (pytest.approx(2.0), pytest.approx(3.0))
        assert (ours.median_seconds, ours.time_ratio) == (4.0, pytest.approx(4.0 / 1.5))
        assert plain.time_ratio == 1.0
        assert (other.raised, other.worst_ratio) == (1, math.inf)
        assert math.isnan(other.time_ratio)

    def test_groups_may_be_made_by_any_field(self):
        comparison = Comparison(
            tuple(a_run(level=level, attack=attack) for level in (0.1, 0.2) for attack in ("decoy", "swap"))
        )
        assert [g.key for g in comparison.summary(["contamination"])] == [
            {"contamination": 0.1},
            {"contamination": 0.2},
        ]
        assert len(comparison.summary(("attack", "contamination"))) == 4
        with pytest.raises(ValueError, match="no field 'colour'"):
            comparison.summary(["colour"])

    def test_without_noise_a_ratio_is_read_in_millionths(self):
        assert a_run(error=2e-6, oracle=0.0).ratio == pytest.approx(2.0)

    def test_losses_name_the_rivals_that_survive(self):
        runs = (
            a_run(error=1.0),
            a_run("robustphase-auto"),
            a_run("oracle"),
            a_run("prox_linear"),
            a_run("wirtinger_flow", error=1.0),
            a_run(attack="erase", error=1.0),
            a_run("oracle", attack="erase"),
            a_run("prox_linear", attack="erase", error=1.0),
        )
        (loss,) = Comparison(runs).losses()
        assert (loss.world.attack, loss.rivals) == ("decoy", ("prox_linear",))

    def test_the_attack_table_ticks_survivors_and_marks_what_rivals_do_better(self):
        runs = []
        for level in (0.1, 0.2):
            for seed in (0, 1):
                runs += [
                    a_run(attack="decoy", level=level, seed=seed),
                    a_run("prox_linear", attack="decoy", level=level, seed=seed, error=1.0 if level > 0.1 else 0.1),
                    a_run(attack="swap", level=level, seed=seed, error=seed),
                    a_run("prox_linear", attack="swap", level=level, seed=seed),
                ]
        lines = Comparison(tuple(runs)).attack_table().splitlines()
        assert lines[0] == "| attack | robustphase | prox_linear |"
        assert lines[2:] == ["| decoy | ✓ | 2/0 |", "| swap | 1/1 | **✓** |"]

    def test_markdown_shows_time_beside_accuracy_and_failures(self):
        text = Comparison((a_run(), a_run("prox_linear", error=math.inf))).markdown(by=["method"])
        head, _, ours, other = text.splitlines()
        assert [cell.strip() for cell in head.strip("|").split("|")] == [
            "method", "survived", "median ratio", "worst ratio", "median seconds", "time / Wirtinger flow", "raised",
        ]  # fmt: skip
        assert ours == "| robustphase | 1 of 1 (100%) | 1.00 | 1.00 | 1.00 |  |  |"
        assert other == "| prox_linear | 0 of 1 (0%) | ∞ | ∞ | 1.00 |  | 1 |"

    def test_a_stroke_in_a_name_does_not_break_a_table(self):
        assert table(["a|b"], [["c"]]).splitlines()[0] == "| a\\|b |"

    def test_a_comparison_is_written_as_a_tidy_table(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        comparison = quick()
        comparison.write(tmp_path / "tidy.csv")
        frame = pandas.read_csv(tmp_path / "tidy.csv", keep_default_na=False)
        assert list(frame.columns) == list(Run._fields)
        assert frame["error"].tolist() == [run.error for run in comparison.runs]
        assert pandas.DataFrame(comparison.columns()).shape == (len(comparison), len(Run._fields))
        assert [path.name for path in tmp_path.iterdir()] == ["tidy.csv"]

    def test_parquet_is_written_where_pyarrow_is_installed(self, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        comparison = quick()
        comparison.write(tmp_path / "tidy.parquet")
        assert parquet.read_table(tmp_path / "tidy.parquet").to_pydict() == comparison.columns()

    def test_parquet_without_pyarrow_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r"pip install 'robustphase\[parquet\]'"):
            quick().write(tmp_path / "tidy.parquet")
        assert not list(tmp_path.iterdir())

    def test_another_ending_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet, got 'tidy\.xlsx'"):
            quick().write(tmp_path / "tidy.xlsx")
