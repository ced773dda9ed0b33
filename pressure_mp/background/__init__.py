"""The work of this process's background threads: leases, items of ended processes, the end of this
one."""
