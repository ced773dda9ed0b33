"""A pool of workers that shrinks pictures, tries failures again, and sets aside what never works.

Run it with a server of its own, or with yours:

    PRESSURE_URL=embedded:// python examples/thumbnailer.py
    PRESSURE_URL=redis://localhost:6379 python examples/thumbnailer.py

It makes a folder of pictures. One of them is written only after a worker first looked for it: that
task is released and tried again. One is cut off: after three deliveries its task is buried, with
the error's text, until a user mends the file and kicks the task.
"""

import tempfile
import time
from multiprocessing import Process
from pathlib import Path

from pressure_mp import Task, TaskQueue

PICTURES = 12
WIDTH, HEIGHT, FACTOR = 160, 120, 8
WORKERS = 2
RETRY_SECONDS = 0.3


def make_picture(path: Path, number: int) -> None:
    """A picture in the portable pixmap format: a header, then three bytes for each pixel."""
    pixels = bytes(
        value % 256
        for y in range(HEIGHT)
        for x in range(WIDTH)
        for value in (x + number, y + number, x * y // 100)
    )
    path.write_bytes(b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + pixels)


def shrink(task: Task) -> None:
    """The handler: what it raises is kept with the task, and the task is tried again."""
    source = Path(task.data["path"])
    header, _, pixels = source.read_bytes().partition(b"\n")
    width, height = (int(number) for number in header.split()[1:3])
    if len(pixels) != 3 * width * height:
        raise ValueError(f"{source.name} has {len(pixels)} bytes of {3 * width * height}")
    small = bytes(
        sum(
            pixels[3 * ((FACTOR * y + dy) * width + FACTOR * x + dx) + channel]
            for dy in range(FACTOR)
            for dx in range(FACTOR)
        )
        // FACTOR**2
        for y in range(height // FACTOR)
        for x in range(width // FACTOR)
        for channel in range(3)
    )
    target = source.with_suffix(".small.ppm")
    target.write_bytes(b"P6 %d %d 255\n" % (width // FACTOR, height // FACTOR) + small)
    task.ack(update={**task.data, "thumbnail": target.name})


def work(pictures: TaskQueue) -> None:
    """A worker process; SIGTERM ends it when the task in hand is finished."""
    pictures.run(shrink, backoff=RETRY_SECONDS)


def main() -> None:
    pictures = TaskQueue(keep=True, max_deliveries=3)
    workers = [Process(target=work, args=(pictures,), daemon=True) for _ in range(WORKERS)]
    for process in workers:
        process.start()

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:02}.ppm" for number in range(PICTURES)]
        late, broken = paths[3], paths[7]
        for number, path in enumerate(paths):
            if path != late:
                make_picture(path, number)
        broken.write_bytes(broken.read_bytes()[:1000])
        ids = pictures.put_many([{"path": str(path)} for path in paths])

        while pictures.peek(ids[paths.index(late)]).error is None:
            time.sleep(0.01)
        make_picture(late, 3)

        for task_id in ids:
            task, was_processed = pictures.wait(task_id)
            name = Path(task.data["path"]).name
            if not was_processed:
                print(f"{name} is set aside after {task.deliveries} deliveries: {task.error}")
            elif task.deliveries > 1:
                print(f"{name} was done at delivery {task.deliveries}, after {task.error}")
        print(f"{len(list(Path(folder).glob('*.small.ppm')))} thumbnails")

        make_picture(broken, 7)
        pictures.kick(ids[7])
        task, was_processed = pictures.wait(ids[7])
        print(f"mended and kicked: {task.data['thumbnail']}")

    for process in workers:
        process.terminate()
        process.join()
    print(f"the workers ended with {[process.exitcode for process in workers]}")


if __name__ == "__main__":
    main()
