"""From a start to the signal.

``robust_gradient`` is the paper's descent: a step needs the mean of the loss gradients ``(|s|² + b − y) s a`` of clean
samples, and a robust mean of all of them is close to it (Definition 2.2). The engine's own way is likelihood:
``candidate_steps`` moves all candidates at once, ``objective`` states what the last step maximises, ``likelihood_fit``
maximises it, ``consistency`` tests its residuals. ``newton`` and ``acceleration`` hold the steps that these share.
"""
