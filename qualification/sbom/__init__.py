"""Bill of materials of an image, read from its own layers. Import the modules; no code here."""
