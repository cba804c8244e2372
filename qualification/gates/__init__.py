"""One file a gate: pure functions of (evidence, policy), independent of each other."""
