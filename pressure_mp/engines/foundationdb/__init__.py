"""Queues in a cluster of FoundationDB. Experimental."""
