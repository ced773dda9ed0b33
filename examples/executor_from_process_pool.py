"""The standard library's example of ProcessPoolExecutor, with another import.

    PRESSURE_URL=redis://broker.example:6379 python examples/executor_from_process_pool.py

Before, it said ``from concurrent.futures import ProcessPoolExecutor as Executor``. Nothing else is
different here. What the change brings is in ``docs/executor.md``: a worker that dies costs one call
another try, not the whole pool; a call that no worker has can be cancelled.
"""

import math
from concurrent.futures import as_completed

from pressure_mp import Executor

NUMBERS = [1_000_000_007, 1_000_000_011, 998_244_353, 999_999_937, 999_999_939]


def is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


def main() -> None:
    with Executor(max_workers=2) as executor:
        for number, found in zip(NUMBERS, executor.map(is_prime, NUMBERS), strict=True):
            print(f"{number} is {'a prime' if found else 'no prime'}")
        futures = {executor.submit(math.isqrt, number): number for number in NUMBERS}
        roots = {futures[future]: future.result() for future in as_completed(futures)}
    print(f"the roots are {', '.join(str(roots[number]) for number in NUMBERS)}")


if __name__ == "__main__":
    main()
