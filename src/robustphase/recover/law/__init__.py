"""Answers where the noise depends on the signal: which law the readings follow, and signals that are fitted under it.

``under_law`` takes a recovery over from the additive engine, and judges groups of readings again under the law; ``evidence`` asks
the readings for their law, and ``engine`` chooses and fits it. Signals behind ``counts`` are raced there; ``bad_counts`` finds
what bad ones have in common; those that an adversary has chosen along a direction are told by ``doubtful_direction`` and
``doubted_grips``.
"""
