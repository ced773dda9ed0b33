"""The items of anonymous queues in memory that the processes of one user on one host share, until
somebody needs them at the broker."""
