"""How queues went in the last hours, and which lead to which."""

from __future__ import annotations

import re
import zlib

from dashboards import serving
from waiting import until

from pressure_mp import Queue
from pressure_mp.administration.broker import Broker
from pressure_mp.dashboard import history
from pressure_mp.dashboard.charts import Curve, chart, rates
from pressure_mp.dashboard.history import History, Point
from pressure_mp.dashboard.survey import in_order
from pressure_mp.operations.brokers import append_sample, list_page

HOUR = 3_600_000


def test_points_are_read_from_what_others_noted_and_what_cannot_be_read_is_left_out(name):
    broker = Broker(f"memory://{name}", name)
    queue = Queue(7, 'jobs "1"\n', url=f"memory://{name}", prefix=name)
    key = queue.name, "fifo"

    def note(data):
        assert broker.run(append_sample(data, 0, 100, HOUR))

    shown = History(broker)
    for number in range(3):
        queue.put(number)
        note(history.write(broker.run(list_page()).queues))
        assert [point.depth for point in shown.points(key)] == list(range(1, number + 2))
    begin = b'\n["jobs \\"1\\"\\n","fifo",'
    for junk in (b"", b"junk", zlib.compress(begin), zlib.compress(begin + b"1,2]\n")):
        note(junk)
    note(zlib.compress(b"x" * (8 << 20) + begin + b"9,9,9,9]\n"))
    points = shown.points(key)
    assert [(point.depth, point.bound, point.produced) for point in points] == [
        (1, 7, 1),
        (2, 7, 2),
        (3, 7, 3),
    ]
    assert shown.points(("another", "fifo")) == []
    assert [point.depth for point in History(broker).points(key)] == [1, 2, 3]


def test_a_running_dashboard_notes_history_and_shows_it(valkey, name):
    queue = Queue(5, "jobs", url=valkey.url, prefix=name)
    queue.open()
    with serving(valkey.url, name) as dashboard:
        dashboard.page("/")
        queue.put_many([1, 2])
        line = re.compile(r'<polyline points="[\d., ]+" class="depth">')
        until(lambda: line.search(dashboard.page("/queue?name=jobs&kind=fifo")))
    assert len(History(Broker(valkey.url, name)).points(("jobs", "fifo"))) == 1
    queue.delete()


def test_rates_leave_out_gaps_and_queues_that_were_made_anew():
    counted = [(0, 0), (60, 120), (90, 0), (150, 60), (9000, 90)]
    points = [Point(time, 0, 0, number, 0) for time, number in counted]
    assert rates(points, "produced") == [(0, 2.0), (60, 2.0), (90, 1.0), (150, 1.0)]


def test_two_samples_make_a_line_of_the_rate():
    points = [Point(10, 0, 0, 5, 0), Point(12, 0, 0, 6, 0)]
    line = chart([Curve("in", rates(points, "produced"))], "in words")
    assert '<polyline points="0.0,8.0 600.0,8.0" class="in">' in line
    assert "<span>0.5</span>" in line


def test_queues_stand_behind_those_that_lead_to_them():
    a, b, c, d = (("abcd"[place], "fifo") for place in range(4))
    assert in_order([a, b, c, d], {c: [a], a: [d]}) == [b, c, a, d]
    assert in_order([a, b], {a: [b], b: [a]}) == [a, b]
