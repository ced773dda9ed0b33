"""Queues in a store of ordered keys, whose transactions are serializable.

The rules are those of :mod:`..requests`; here is their state, which a transaction reads when it is
asked for, and writes where it changed. An engine of this family supplies the store.
"""
