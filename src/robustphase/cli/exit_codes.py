"""Exit codes of the commands, apart from 0 (done and converged), 1 (an error) and 2 (bad usage)."""

#: Finished, but the answer did not settle.
UNSETTLED = 3
#: Finished, but the data contradict the model, so the answer is in doubt.
MODEL_FAILS = 4
#: Stopped by Ctrl-C, and by a request to terminate: 128 plus the signal's number, as shells have it.
INTERRUPTED, TERMINATED = 130, 143
