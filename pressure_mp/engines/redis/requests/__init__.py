"""How each request of the contract is done: a script, and what has to be done around it."""
