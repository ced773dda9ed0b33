"""``python -m benchmarks``"""

if __name__ == "__main__":
    # Here, because each process of a workload imports this module too.
    from .command import main

    main()
