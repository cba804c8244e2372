"""Other engines behind the wire contract, so that the harness can drive them: adapters, and what each cannot do."""
