"""
A stream
========

Batches arrive one after the other and are forgotten; a tenth of each is bad.
``partial_fit`` takes one descent step per batch, as the theory of the method asks for:
memory stays constant, and the error falls to what a batch allows.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

signal = rp.simulate.random_signal(64, seed=0)
oracle = rp.simulate.SampleOracle(signal, contamination=0.1, attack="leverage", seed=1)
stream = rp.RobustPhaseRetrieval(contamination=0.1)
errors = []
for batch in oracle.batches(15, 2000):
    stream.partial_fit(batch.A, batch.y)
    errors.append(rp.distance(stream.signal_, signal, relative=True))

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.semilogy(np.arange(1, len(errors) + 1), errors, "o-", color="#0a6c89")
ax.set(xlabel="batches seen", ylabel="relative error")
print([round(error, 3) for error in errors])

# sphinx_gallery_start_ignore
assert errors[-1] < errors[0]
# sphinx_gallery_end_ignore
