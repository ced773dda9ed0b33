"""The fault suite: clients that are killed, stopped, cut off, and what checks their histories."""
