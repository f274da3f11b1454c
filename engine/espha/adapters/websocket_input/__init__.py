"""Takes the messages of a WebSocket."""
