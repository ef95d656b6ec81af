"""Rows in files, never loaded whole.

Each format (``npy``, ``hdf5``, ``zarr``, ``parquet``) is a source that fetches rows; ``prefetch`` reads ahead of the computation
while it runs, and ``limits`` says what a file may ask for before it is believed.
"""
