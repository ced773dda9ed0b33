"""What users hold: the classes for threads and processes."""
