"""Items of anonymous queues in memory that the processes of one user on one host share, until the
queue needs the broker."""
