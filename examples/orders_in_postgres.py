"""Orders and the tasks to ship them, in one PostgreSQL database: both are there, or neither is.

Run it with your database, in which ``pressure-mp postgres install`` made the schema:

    PRESSURE_URL=postgresql://user@localhost/shop python examples/orders_in_postgres.py

An order and its task are put in one transaction; of an order that is taken back there is no task.
Two workers ship: what was shipped is written, and the task acknowledged, in one transaction. A
worker that fails in the midst of it has shipped nothing, and the order is shipped by the next try:
so every order is shipped exactly once, as far as the database is concerned.
"""

import logging
import os
import threading

import psycopg

from pressure_mp import Task, TaskQueue

URL = os.environ["PRESSURE_URL"]
TABLES = """
    CREATE TABLE orders (number integer PRIMARY KEY, goods text);
    CREATE TABLE shipments (number integer, delivery integer);
"""

shipping: TaskQueue[int] = TaskQueue(url=URL)


def take_orders() -> None:
    """Nine of them; every third is taken back, since there is nothing left of what it asks for."""
    with psycopg.connect(URL, autocommit=True) as connection:
        for number in range(1, 10):
            with connection.transaction():
                connection.execute("INSERT INTO orders VALUES (%s, 'a lamp')", [number])
                shipping.put(number, connection=connection)
                if number % 3 == 0:
                    raise psycopg.Rollback


@shipping.worker(concurrency=2)
def ship(task: Task[int]) -> None:
    with psycopg.connect(URL) as connection:
        written = "INSERT INTO shipments VALUES (%s, %s)"
        connection.execute(written, [task.data, task.deliveries])
        task.ack(connection=connection)
        if task.data == 4 and task.deliveries == 1:
            raise RuntimeError("the worker stumbles, before it commits")


def main() -> None:
    logging.getLogger("pressure_mp").setLevel(logging.CRITICAL)  # an error is expected here
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(TABLES)
        try:
            take_orders()
            done = threading.Event()
            working = threading.Thread(target=shipping.run, kwargs={"stop": done})
            working.start()
            shipments = "SELECT number, delivery FROM shipments ORDER BY number"
            while len(found := connection.execute(shipments).fetchall()) < 6:
                done.wait(0.05)
            done.set()
            working.join()
            for number, delivery in found:
                print(f"order {number} was shipped, at delivery {delivery} of its task")
        finally:
            connection.execute("DROP TABLE orders, shipments")


if __name__ == "__main__":
    main()
