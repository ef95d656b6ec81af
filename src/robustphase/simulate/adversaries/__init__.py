"""Adversaries by group; ``ADVERSARIES`` maps names to them.

``samples`` holds those that rewrite one half of a sample or both, or aim at the samples that tell most about the signal;
``adaptive`` those that aim at the methods: their gradients, spectra and stopping points.
``GROUP_ADVERSARIES`` (``whole_groups``) rewrite groups of samples that belong together, and need to be told which do.
To add one, write a pure function from the moves in ``base`` and list it, with one sentence, at the end of its group.
"""

from robustphase.simulate.adversaries.adaptive import ADAPTIVE
from robustphase.simulate.adversaries.base import GROUPS, Adversary, CleanSample, Rewrite
from robustphase.simulate.adversaries.samples import COVARIATES, INFORMATION, JOINT, RESPONSES
from robustphase.simulate.adversaries.whole_groups import WHOLE_GROUPS
from robustphase.simulate.arguments import check_choice

ADVERSARIES: dict[str, Adversary] = {
    adversary.name: adversary for adversary in (*RESPONSES, *COVARIATES, *JOINT, *INFORMATION, *ADAPTIVE)
}
GROUP_ADVERSARIES: dict[str, Adversary] = {adversary.name: adversary for adversary in WHOLE_GROUPS}


def find_adversary(attack: str | Adversary, *, grouped: bool = False) -> Adversary | None:
    """Return the adversary of that name, or ``None`` for "none"; an `Adversary` is returned as it is.

    Parameters
    ----------
    attack : str or Adversary
        Name or adversary.
    grouped : bool, default=False
        Whether it is known which samples belong together; otherwise adversaries that rewrite whole groups are refused.
    """
    known = ADVERSARIES | GROUP_ADVERSARIES
    found = attack if isinstance(attack, Adversary) else known.get(attack) if isinstance(attack, str) else None
    if found is not None:
        if found.group == "groups" and not grouped:
            raise ValueError(
                f"attack {found.name!r} rewrites whole groups of samples: pass groups, their number or one label per row of A."
            )
        return found
    check_choice("attack", attack, [*(known if grouped else ADVERSARIES), "none"])
    return None


__all__ = ["ADVERSARIES", "GROUPS", "GROUP_ADVERSARIES", "Adversary", "CleanSample", "Rewrite", "find_adversary"]
