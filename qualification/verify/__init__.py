"""The offline verifier: everything recomputed from the files of a bundle, nothing believed."""
