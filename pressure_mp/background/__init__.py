"""What threads of this process do: leases, what dead processes left, the end of the process."""
