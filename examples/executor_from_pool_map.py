"""``multiprocessing.Pool.map`` and its kin, by an Executor.

    PRESSURE_URL=redis://broker.example:6379 python examples/executor_from_pool_map.py

Calls of a pool, and the same calls of an executor:

    pool.map(count, texts, chunksize=10)     list(executor.map(count, texts, chunksize=10))
    pool.starmap(pow, pairs)                 list(executor.map(pow, *zip(*pairs)))
    pool.imap(count, texts)                  executor.map(count, texts, buffersize=10)
    pool.imap_unordered(count, texts)        executor.map(count, texts, unordered=True)
    pool.apply_async(count, (text,)).get()   executor.submit(count, text).result()
    Pool(maxtasksperchild=100)               Executor(max_tasks_per_child=100)

``Pool.imap`` draws all inputs at once and keeps what it made of them until it is asked for;
``buffersize`` draws no more than that, so that the inputs may be endless.
"""

import itertools
from collections.abc import Iterator

from pressure_mp import Executor


def count(text: str) -> int:
    return len(text.split())


def endless() -> Iterator[str]:
    return (" ".join(["word"] * number) for number in itertools.count())


def main() -> None:
    texts = ["one", "one two", "one two three"] * 100
    pairs = [(2, 3), (3, 2), (10, 2)]
    with Executor(2) as executor:
        print(f"map: {sum(executor.map(count, texts, chunksize=10))} words")
        print(f"starmap: {list(executor.map(pow, *zip(*pairs, strict=True)))}")
        few = itertools.islice(executor.map(count, endless(), buffersize=10), 5)
        print(f"imap: {list(few)}")
        print(f"imap_unordered: {sorted(executor.map(count, texts[:3], unordered=True))}")
        print(f"apply_async: {executor.submit(count, texts[2]).result()}")


if __name__ == "__main__":
    main()
