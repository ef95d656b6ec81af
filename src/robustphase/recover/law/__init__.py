"""Answers where the noise depends on the signal: which law the readings follow, and signals that are fitted under it.

``under_law`` takes a recovery over from the additive engine, and judges groups of readings again under the law; ``engine`` asks
the readings for their law, and fits it. Signals behind ``counts`` are sought and raced there; ``bad_counts`` finds what bad ones
have in common; those that an adversary has chosen along a direction are told by their ``grips``.
"""
