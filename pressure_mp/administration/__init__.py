"""What operators look at and put right, of any queue: for the command and the dashboard."""
