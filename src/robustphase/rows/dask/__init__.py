"""Rows of a Dask array, held by the workers of a cluster.

``source`` is the row source. ``partition`` says which rows each worker holds, ``cluster`` brings them there and runs the
passes, one task per worker, ``workers`` looks after them, and ``serialise`` turns the kernels into bytes.
"""
