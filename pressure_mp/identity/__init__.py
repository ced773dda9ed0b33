"""Who a client is, and which processes live. Imports nothing else of the package."""
