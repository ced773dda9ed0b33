"""Checksums of all files below a directory, computed by several processes.

``legacy_before.py`` uses queues of multiprocessing, ``legacy_after.py`` queues of pressure_mp.
Nothing but an import differs; compare them with ``diff``. Run either:

    python examples/legacy_before.py [DIRECTORY]
    PRESSURE_URL=embedded:// python examples/legacy_after.py [DIRECTORY]
"""

import hashlib
import sys
from multiprocessing import Process
from pathlib import Path

# isort: split
from multiprocessing import JoinableQueue, Queue

WORKERS = 3


def checksum_files(jobs, results):
    while True:
        path = jobs.get()
        if path is None:
            jobs.task_done()
            break
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        results.put((path, digest))
        jobs.task_done()


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    files = [path for path in root.rglob("*") if path.is_file()]

    jobs = JoinableQueue(maxsize=10)
    results = Queue()
    workers = [Process(target=checksum_files, args=(jobs, results)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for path in files:
        jobs.put(path)
    for _ in workers:
        jobs.put(None)
    jobs.join()

    digests = dict(results.get() for _ in files)
    for worker in workers:
        worker.join()
    jobs.close()
    results.close()

    overall = hashlib.sha256()
    for path in sorted(files):
        print(digests[path], path.relative_to(root))
        overall.update(digests[path].encode())
    print(overall.hexdigest(), f"all {len(files)} files")


if __name__ == "__main__":
    main()
