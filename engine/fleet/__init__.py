"""One front door over many engines: the wire contract on a Ray cluster."""
