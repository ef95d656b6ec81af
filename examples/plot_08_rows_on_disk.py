"""
Rows on disk
============

Covariates that do not fit into memory stay where they are: the fit reads them block by
block, and the answer is that of the same rows in memory. HDF5, zarr, ``.npy``, plain
``.npz``, MATLAB 7.3 and parquet are read so.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

world = rp.simulate.make_world(
    n=100, m=6000, contamination=0.1, attack="leverage", signal="image", seed=0
)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "samples.npz"
rp.files.save_samples(path, world.A, world.y, truth=world.truth, seed=0)
print(f"{path.stat().st_size / 1e6:.1f} MB on disk")

# %%
# ``open_samples`` looks at the first bytes of the file, not at its name, and loads
# nothing yet.
with rp.files.open_samples(path) as samples:
    print(samples.description)
    model = rp.RobustPhaseRetrieval(contamination=0.1).fit(
        samples.covariates, samples.responses
    )

same = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y)
print(
    "largest difference to the fit in memory:",
    np.abs(model.signal_ - same.signal_).max(),
)
folder.cleanup()

# %%
# Every pass over the data is one sweep over the file; ``history_`` counts them by
# stage.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
rp.plot.signal(model, truth=world.truth, shape=(10, 10), ax=axes[0])
rp.plot.history(model, "passes", ax=axes[1])

# sphinx_gallery_start_ignore
assert np.allclose(model.signal_, same.signal_, atol=1e-8)
# sphinx_gallery_end_ignore
