"""The code that talks to brokers: one engine for each kind."""
