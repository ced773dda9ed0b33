"""A crawler that visits pages near the start first, with several processes at work.

Run it with a server of its own, or with yours:

    PRESSURE_URL=embedded:// python examples/priority_crawler.py
    PRESSURE_URL=redis://localhost:6379 python examples/priority_crawler.py

The priority of a page is its distance from the start, the first member of the item. Pages of the
same distance are visited in the order in which they were found. The "site" is made of numbers, so
that the example needs no network: page n links to 2n and 2n + 1, and back.
"""

import time
from multiprocessing import Process

from pressure_mp import PriorityQueue, Queue

PAGES = 40
WORKERS = 3
FETCH_SECONDS = 0.01


def fetch(page: int) -> list[int]:
    """The pages that this one links to."""
    time.sleep(FETCH_SECONDS)
    return [link for link in (2 * page, 2 * page + 1, page // 2) if 1 <= link <= PAGES]


def crawl(frontier: PriorityQueue, found: Queue) -> None:
    for distance, page in frontier:
        found.put((distance, page, fetch(page)))


def main() -> None:
    frontier, found = PriorityQueue(), Queue()
    workers = [Process(target=crawl, args=(frontier, found)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()

    frontier.put((0, 1))
    known, open_pages, visited = {1}, 1, []
    while open_pages:
        distance, page, links = found.get()
        visited.append((distance, page))
        open_pages -= 1
        for link in links:
            if link not in known:
                known.add(link)
                open_pages += 1
                frontier.put((distance + 1, link))
    frontier.shutdown()
    for worker in workers:
        worker.join()

    for distance in range(max(visited)[0] + 1):
        pages = [page for at, page in visited if at == distance]
        print(f"distance {distance}: pages {' '.join(map(str, sorted(pages)))}")
    print(f"{len(visited)} pages visited")


if __name__ == "__main__":
    main()
