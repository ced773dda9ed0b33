"""Programs as they stand in tutorials and libraries, with the queues of multiprocessing or of
pressure_mp: ``python -m benchmarks.programs.sentinels multiprocessing 1000``."""
