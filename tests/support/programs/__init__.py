"""What other processes do: programs that tests start, kill, stop and watch."""
