"""Sends what a window publishes to a broker of MQTT."""
