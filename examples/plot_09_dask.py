"""
Rows on a Dask cluster
======================

A ``dask.array`` may be spread over many machines. Every pass is one task per worker,
and sums come back, not rows. Here the cluster is two threads of this process; on a real
one only the line that makes the client differs. Needs ``pip install
'robustphase[dask]'``; without it this example says so and ends.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

world = rp.simulate.make_world(
    n=64, m=4000, contamination=0.1, attack="cloud", signal="image", seed=0
)
model = rp.RobustPhaseRetrieval(contamination=0.1)

if find_spec("distributed") is None:
    print("no Dask here, so the rows stay in memory: pip install 'robustphase[dask]'")
    model.fit(world.A, world.y)
else:
    import dask.array as da
    from distributed import Client

    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        A, y = (
            da.from_array(world.A, chunks=(500, 64)),
            da.from_array(world.y, chunks=500),
        )
        model.fit(A, y)
        workers = client.scheduler_info()["workers"]
        print(f"{len(workers)} workers, {A.npartitions} chunks of rows")

# %%
# The answer is that of the same rows in memory, up to rounding.
same = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y)
print("largest difference:", np.abs(model.signal_ - same.signal_).max())

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, fit, name in ((axes[0], model, "Dask"), (axes[1], same, "memory")):
    rp.plot.signal(fit, truth=world.truth, shape=(8, 8), ax=ax)
    ax.set_title(name)

# sphinx_gallery_start_ignore
assert np.allclose(model.signal_, same.signal_, atol=1e-8)
# sphinx_gallery_end_ignore
