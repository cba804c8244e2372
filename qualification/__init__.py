"""The harness: proves things about any engine that speaks the wire contract. It never imports the engine."""
