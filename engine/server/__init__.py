"""HTTP server of the engine: the wire contract over ASGI. Import what you need from the modules; this file holds no code."""
