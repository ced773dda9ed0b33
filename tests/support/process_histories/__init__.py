"""Histories of processes that share queues: lists of steps, to print, repeat and shrink."""
