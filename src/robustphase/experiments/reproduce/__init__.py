"""The paper's claims as experiments: each statement is measured, with an interval, and gets a verdict.

A statement of the paper that is an inequality is tried where it is tight; one that says "there is a constant" is tried with a
constant named in advance; a law (geometric in T, m^(−1/2), proportional to σ) is measured as a slope where its term is the
largest. What agrees with the paper *holds*. What contradicts the printed text and agrees with the correction in docs/errata.md
is an *erratum*. The rest *fails*.

* ``lemma_*``, ``theorem_*``, ``algorithm_4``, ``table_1_*``, ``paper_mode``: one module per claim, with its constants and sizes;
* ``curvature``, ``starts``, ``descents``, ``pipeline``: what several claims share; ``attacks`` holds the adversaries that make
  the error as large as the theorems allow, ``growth`` finds out how a needed sample size grows;
* ``intervals``, ``verdict``, ``crew``, ``run``, ``page``: confidence, judgement, processes, order, and the table.

Everything is run through the public interface: procedures and algorithms are those of :mod:`robustphase.paper`.
"""

from robustphase.experiments.reproduce.page import write_page
from robustphase.experiments.reproduce.run import CLAIMS, ReproductionInterrupted, reproduce
from robustphase.experiments.reproduce.verdict import Verdict

__all__ = ["CLAIMS", "ReproductionInterrupted", "Verdict", "reproduce", "write_page"]
