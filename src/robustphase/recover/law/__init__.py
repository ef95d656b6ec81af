"""Answers where the noise depends on the signal: which law the readings follow, and signals that are fitted under it.

``under_law`` takes a recovery over from the additive engine; ``evidence`` asks the readings for their law, ``counts`` and
``curve`` fit signals under it, ``engine`` chooses among them, and ``groups`` judges readings that are bad together again.
``bad_counts`` finds what bad counts have in common; those that an adversary has chosen along a direction are told by
``doubtful_direction`` and ``doubted_grips``.
"""
