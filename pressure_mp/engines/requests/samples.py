"""Add and read the samples of a broker, by the milliseconds at which they were taken."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from ..contract.brokers import AppendSample, ReadSamples, Sample


def append(samples: MutableMapping[int, bytes], request: AppendSample, now: int) -> bool:
    """Append a sample, unless the last one is not old enough; remove the oldest."""
    times = list(samples)
    if times and 0 <= now - times[-1] < request.every:
        return False
    time = max(now, times[-1] + 1) if times else now
    samples[time] = request.data
    for old in [*times, time][: -request.keep]:
        del samples[old]
    return True


def read(samples: Mapping[int, bytes], request: ReadSamples) -> list[Sample]:
    return [Sample(time, data) for time, data in samples.items() if time > request.after]
