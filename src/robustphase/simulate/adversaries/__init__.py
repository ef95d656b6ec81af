"""Adversaries by group, one file each; ``ADVERSARIES`` maps names to them.

``responses`` and ``covariates`` rewrite one half of a sample, ``joint`` both halves, ``information`` aims at the
samples that tell most about the signal, and ``adaptive`` at the methods: their gradients, spectra and stopping points.
To add one, write a pure function from the moves in ``base`` and list it, with one sentence, at the end of its file.
"""

from robustphase.simulate.adversaries.adaptive import ADAPTIVE
from robustphase.simulate.adversaries.base import GROUPS, Adversary, CleanSample, Rewrite
from robustphase.simulate.adversaries.covariates import COVARIATES
from robustphase.simulate.adversaries.information import INFORMATION
from robustphase.simulate.adversaries.joint import JOINT
from robustphase.simulate.adversaries.responses import RESPONSES
from robustphase.simulate.arguments import check_choice

ADVERSARIES: dict[str, Adversary] = {
    adversary.name: adversary for adversary in (*RESPONSES, *COVARIATES, *JOINT, *INFORMATION, *ADAPTIVE)
}


def find_adversary(attack: str | Adversary) -> Adversary | None:
    """Return the adversary of that name, or ``None`` for "none"; an `Adversary` is returned as it is."""
    if isinstance(attack, Adversary):
        return attack
    name = check_choice("attack", attack, [*ADVERSARIES, "none"])
    return ADVERSARIES.get(name)


__all__ = ["ADVERSARIES", "GROUPS", "Adversary", "CleanSample", "Rewrite", "find_adversary"]
