"""Work in several processes: results as from one, and ends that leave nothing behind."""

import os
import threading
import time
from contextlib import closing

import pytest
from joblib import Parallel, delayed

from robustphase.experiments.parallel import in_processes


def doubled(number):
    if number < 0:
        raise ValueError(f"no number like {number}")
    return 2 * number


def process(_):
    time.sleep(0.01)
    return os.getpid()


@pytest.mark.parametrize("ordered", [True, False])
def test_every_task_is_done_once_and_in_order_if_wanted(ordered):
    results = list(in_processes(doubled, range(100), 2, ordered=ordered))
    assert (results if ordered else sorted(results)) == [2 * number for number in range(100)]


def test_an_error_of_a_task_reaches_the_caller_and_others_can_work_afterwards():
    with pytest.raises(ValueError, match="no number like -1"):
        list(in_processes(doubled, [1, -1, *range(50)], 2))
    assert list(in_processes(doubled, [1, 2], 2)) == [2, 4]


def test_workers_are_kept_for_further_tasks_and_joblib_has_its_own():
    first = set(in_processes(process, range(20), 2))
    assert set(Parallel(2)(delayed(doubled)(number) for number in range(4))) == {0, 2, 4, 6}
    assert set(in_processes(process, range(20), 2)) == first
    assert os.getpid() not in first


def test_whoever_stops_early_leaves_no_failed_thread(monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: failed.append(arguments.exc_type))
    for stop in range(12):
        with closing(in_processes(lambda number: number, range(24), 2, ordered=stop % 2 == 0)) as results:
            for _ in range(1 + stop % 5):
                next(results)
    assert failed == []
