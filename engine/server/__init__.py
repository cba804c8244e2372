"""HTTP server of the engine: the wire contract over ASGI. Import from the modules; this file holds no code."""
