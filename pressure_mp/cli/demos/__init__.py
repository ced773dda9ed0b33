"""What ``pressure-mp demo`` can show."""
