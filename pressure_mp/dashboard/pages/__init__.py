"""The pages of the dashboard: a module for each page."""
