"""Bundles that must be refused: one good bundle, one thing changed, one finding code expected."""
