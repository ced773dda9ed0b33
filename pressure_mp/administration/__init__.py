"""Look at queues of any kind, and repair them: for the command and the dashboard."""
