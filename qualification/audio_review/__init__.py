"""The automatic audio review of a sealed bundle: checks of its stored utterances, added as a layer."""
