"""Does the model hold? Every fit ends with a test of what it took for granted.

A fit answers whatever it is given: the best signal under ``y = |a·x|² + noise`` for a standard normal design. Each check holds
one figure of the fit (:mod:`robustphase.recover.model.figures`) against what that model allows at this number of samples and
unknowns. A check that fails names the likely cause and the next thing to try. It is *severe* if the answer itself can no longer
be believed; then the fit has not converged and nothing is certified. Thresholds that rest on chance are set for one false alarm
in ten thousand fits each, a nominal rate that has not been measured; the shares beside them say how large an effect must be to
matter.
"""

from __future__ import annotations

import math

from robustphase.recover.model.consequences import error_as_given
from robustphase.recover.model.design import Design
from robustphase.recover.model.figures import Figures
from robustphase.recover.model.residual_checks import (
    background_check,
    dependence_check,
    evenness_check,
    length_check,
    power_check,
    row_order_checks,
    turn_check,
)
from robustphase.recover.model.sample_checks import (
    design_checks,
    explained_check,
    flagged_check,
    noise_check,
    rival_check,
    samples_check,
    signal_check,
    votes_check,
)
from robustphase.recover.model.verdict import ABOUT_RESIDUALS, ABOUT_ROWS, Check, ModelCheck, Told


def check_model(figures: Figures, design: Design | None, told: Told, *, no_signal: bool) -> ModelCheck:
    """Hold the figures of a fit against its model.

    Parameters
    ----------
    figures : Figures
        Of one signal.
    design : Design or None
        Of its rows; None for a linear operator.
    told : Told
        What the fit was told.
    no_signal : bool
        Whether a signal of zero explains the responses.
    """
    expected = error_as_given(figures, design, told.is_complex)
    found = [
        signal_check(figures, no_signal),
        samples_check(figures, told.is_complex),
        *(() if design is None else design_checks(design, figures.unknowns // (2 if told.is_complex else 1), told)),
        power_check(figures, told.stated),
        dependence_check(figures, told.is_complex),
        length_check(figures),
        flagged_check(figures, told),
        rival_check(figures, told.stated, design),
        *(() if math.isnan(figures.missed) else (votes_check(figures),)),
        explained_check(figures, told.stated),
        noise_check(figures, expected),
        *(() if told.unknown_mean else (background_check(figures, expected),)),
        evenness_check(figures, told),
        *row_order_checks(figures, told.drifting, ordered=design is not None),
        turn_check(figures),
    ]
    if told.rough:
        found = [check for check in found if check.name not in ABOUT_RESIDUALS]
    return ModelCheck(tuple(_blamed(_together(found, ordered=design is not None))))


def _together(checks: list[Check], *, ordered: bool) -> list[Check]:
    """A curve that is slightly off does little harm by itself; with a background, or two other failures, it is another law.

    Failures that rows of an operator explain by themselves do not count: those of neighbours.
    """
    expected = () if ordered else ("neighbouring residuals",)
    others = {check.name for check in checks if check.failed and check.name in ABOUT_RESIDUALS} - set(expected)
    if "power of the responses" not in others or ("background" not in others and len(others) < 3):
        return checks
    return [check._replace(severe=True) if check.name == "power of the responses" else check for check in checks]


def _blamed(checks: list[Check]) -> list[Check]:
    """Where too many samples are flagged and the design is off, the design is to blame: screening takes its rows for bad ones."""
    if not any(check.name == "flagged share" and check.severe for check in checks):
        return checks
    return [check._replace(severe=check.failed) if check.name in ABOUT_ROWS else check for check in checks]
