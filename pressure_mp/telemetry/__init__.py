"""Report queues to monitoring systems."""
