"""Descent on robust gradients.

A step needs the mean of the loss gradients ``(|s|² + b − y) s a`` of clean samples; a robust mean of all of them is close
to it (Definition 2.2 of the paper), and everything else is gradient descent. ``gradients`` makes the cloud of gradients,
``printed`` runs Algorithms 2 and 4.
"""

from robustphase.descend.gradients import gradient_points, robust_gradient
from robustphase.descend.printed import printed_descent

__all__ = ["gradient_points", "printed_descent", "robust_gradient"]
