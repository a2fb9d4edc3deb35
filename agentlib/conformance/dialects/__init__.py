"""How each API encodes a script as native events: the dialects, and their references."""
