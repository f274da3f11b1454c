"""Connectors to what stands outside: web addresses, databases, brokers."""
