"""The contract that every engine fulfils: typed requests and replies, and a session's verbs.

A request is one thing that can be done to a queue atomically: an immutable record. Beside each one,
``<Request>Reply`` is the union of what an engine returns for it. What an engine cannot do now, and
may be able to do after a wait, is one of the replies in :data:`replies.Later`.
"""
