"""The paper's claims as experiments: each statement is measured, with an interval, and gets a verdict.

A statement of the paper that is an inequality is tried where it is tight; one that says "there is a constant" is tried with a
constant named in advance; a law (geometric in T, m^(−1/2), proportional to σ) is measured as a slope where its term is the
largest. What agrees with the paper *holds*. What contradicts the printed text and agrees with the correction in docs/errata.md
is an *erratum*. The rest *fails*.

* ``lemmas``, ``starts``, ``conditions``, ``descents``, ``tables``, ``end_to_end``: the claims, with their constants and sizes;
* ``attacks`` holds the adversaries that make the error as large as the theorems allow;
* ``stats``, ``verdict``, ``run``: confidence and growth, judgement and the page, order and what is kept.

Everything is run through the public interface: procedures and algorithms are those of :mod:`robustphase.paper`.
"""

from robustphase.experiments.reproduce.run import CLAIMS, ReproductionInterrupted, reproduce
from robustphase.experiments.reproduce.verdict import Verdict, write_page

__all__ = ["CLAIMS", "ReproductionInterrupted", "Verdict", "reproduce", "write_page"]
