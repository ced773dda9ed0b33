"""What the dashboard shows: a module for each page."""
