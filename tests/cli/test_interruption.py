"""Real processes and real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.processes import COMMAND_LINE, start

from robustphase.cli import main

from .conftest import leftovers

#: Runs the command line with a fit that never ends, and says when it has begun: no race between the signal and the work.
ENDLESS = """
import sys, time
import robustphase as rp
from robustphase.cli import main
real = rp.rows.RowSource.reduce
def reduce(self, *arguments, **settings):
    if self.passes == 20:
        print("begun", flush=True)
    if self.passes >= 20:
        self.passes = 19
        for _ in range(3000):
            time.sleep(0.01)
    return real(self, *arguments, **settings)
rp.rows.RowSource.reduce = reduce
sys.exit(main(sys.argv[1:]))
"""


def start_from_scratch(program: str, *arguments: str, cwd) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs deaf to Ctrl-C; whoever runs these tests may have been started so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_fit_that_is_interrupted_says_so_and_leaves_nothing(tmp_path, data, sent, code, word):
    process = start(ENDLESS, "fit", data.name, "--out", "result.npz", "--report", "report.html", cwd=tmp_path)
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "begun\n":
        assert line, process.communicate()
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    again = "robustphase fit data.npz --out result.npz --report report.html --resume"
    assert said == f"{word}; nothing was written; a run that can go on where it was interrupted: {again}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]


#: The console script, and a Ctrl-C in the moment when a module is looked for.
WHILE_IMPORTING = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from robustphase.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module", ["click", "robustphase.cli.app", "rich.console", "numpy", "scipy.linalg", "robustphase.cli.fit"]
)
def test_an_interruption_during_the_imports_is_no_traceback(tmp_path, module):
    process = start_from_scratch(WHILE_IMPORTING.format(module=module), "fit", "data.npz", cwd=tmp_path)
    told, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (told, said.strip()) == ("", "interrupted; nothing was written")


def test_nothing_that_takes_time_is_imported_before_interruptions_are_heard(tmp_path):
    """A console script imports the front door outside of any function."""
    program = "import sys; before = set(sys.modules); import robustphase.cli; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    ours = {"robustphase", "robustphase.cli", "robustphase.cli.exit_codes"}
    others = {name.partition(".")[0] for name in set(done.stdout.split()) - ours}
    assert others <= {"importlib", "__future__", "warnings"}


WHILE_WRITING = """
import os, sys, signal
from robustphase.cli import main
real = os.{call}
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*arguments)
os.{call} = interrupted
sys.exit(main(sys.argv[1:]))
"""


def test_an_interruption_while_the_result_is_written_leaves_the_old_one(tmp_path, data):
    (tmp_path / "result.npz").write_text("earlier")
    asked = ("fit", data.name, "--out", "result.npz", "--overwrite")
    process = start(WHILE_WRITING.format(call="fsync"), *asked, cwd=tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.startswith("interrupted; nothing was written; ")
    assert (tmp_path / "result.npz").read_text() == "earlier"
    assert not leftovers(tmp_path)


AFTER_THE_RESULT = """
import sys
import robustphase.cli.fit_outcome as module
from robustphase.cli import main
def interrupted(*arguments):
    raise KeyboardInterrupt
module.write_report = interrupted
sys.exit(main(sys.argv[1:]))
"""


def test_an_interruption_after_the_result_says_what_was_written(tmp_path, data):
    process = start(AFTER_THE_RESULT, "fit", data.name, "--out", "result.npz", "--report", "report.html", cwd=tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "interrupted; result.npz was written\n"
    with np.load(tmp_path / "result.npz", allow_pickle=False) as result:
        assert "signal" in result


def test_a_comparison_that_is_interrupted_goes_on_where_it_stopped(tmp_path):
    arguments = (
        "compare",
        "--methods",
        "wirtinger_flow",
        "--attacks",
        "all",
        "--n",
        "10",
        "--m",
        "300",
        "--seeds",
        "40",
    )
    kept = (*arguments, "--workers", "1", "--out", "runs.csv")
    process = start(COMMAND_LINE, *kept, cwd=tmp_path)
    runs = tmp_path / "runs.csv"
    deadline = time.monotonic() + 60
    while not (runs.exists() and len(runs.read_bytes().splitlines()) > 5):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; the runs so far are in runs.csv, and the same command continues" in said
    assert "wirtinger_flow" in told
    lines = runs.read_text().splitlines()
    assert 2 < len(lines) < 1602
    assert not leftovers(tmp_path)


def test_a_reader_that_goes_away_is_no_error_worth_a_traceback(tmp_path):
    theirs, mine = os.pipe()
    os.close(theirs)
    process = start(COMMAND_LINE, "simulate", "--list", cwd=tmp_path, stdout=mine)
    os.close(mine)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said


def test_the_module_runs_as_a_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "robustphase.cli", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("robustphase ")


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_sentence_says_how_to_install_it(capsys, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["fit", "x"]) == 1
    told, said = capsys.readouterr()
    assert told == ""
    assert said == f"error: the command line needs {missing}; install it with: pip install 'robustphase[cli]'\n"


def test_the_front_door_needs_nothing_beyond_the_default_install(tmp_path):
    program = "import sys, robustphase.cli; sys.exit(bool({'click', 'rich'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
