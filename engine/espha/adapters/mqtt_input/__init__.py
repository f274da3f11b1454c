"""Takes messages from a broker of MQTT."""
