"""What monitoring systems are told of queues."""
