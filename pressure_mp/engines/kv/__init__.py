"""Queues in a store of ordered keys, whose transactions are serializable.

:mod:`..requests` has the rules, and this package their state: a transaction reads each part of it
when a rule asks for it, and writes the parts that changed. An engine of this family supplies the
store.
"""
