"""Plain least squares on clean data and under attack: why robustness is needed."""

from __future__ import annotations

import robustphase as rp

SIZES = {"n": 100, "m": 5000, "noise": "student", "noise_std": 0.5, "seed": 0}


def main() -> None:
    print("Recovering a signal with 100 entries from 5000 phaseless measurements, heavy-tailed noise.\n")
    print(f"{'what the adversary does to 10% of the samples':<62} relative error of plain least squares")
    for attack in ("none", *rp.simulate.ADVERSARIES):
        world = rp.simulate.make_world(contamination=0.1, attack=attack, **SIZES)
        what = "nothing" if attack == "none" else f"{attack}: {rp.simulate.ADVERSARIES[attack].description}"
        print(f"{what[:60]:<62} {outcome(world)}", flush=True)


def outcome(world: rp.simulate.World) -> str:
    try:
        fit = rp.baselines.wirtinger_flow(world.A, world.y)
    except ValueError:
        return "refused: not finite"
    error = rp.distance(fit.signal, world.truth, relative=True)
    return f"{error:6.3f}   {'recovered' if error < 0.25 else 'lost'}"


if __name__ == "__main__":
    main()
