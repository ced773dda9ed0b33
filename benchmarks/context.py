"""How the processes of a workload begin."""

from __future__ import annotations

import multiprocessing

# A server that forks: each child begins with the peers imported and without connections.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.preloaded"])
