"""Which cluster a cluster file means."""

from __future__ import annotations

import os
from pathlib import Path

from simulated_fdb.transaction import Served

#: The clusters of this process, by the paths of their files.
here: dict[str, Served] = {}


def reach(cluster_file: bytes | None) -> Served:
    """The cluster of a file, or of the one that the variable FDB_CLUSTER_FILE names."""
    from simulated_fdb.serving import Remote

    path = os.fsdecode(cluster_file or os.environ["FDB_CLUSTER_FILE"])
    return here[path] if path in here else Remote(Path(path).read_text())
