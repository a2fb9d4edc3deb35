"""How each API tells a script as native events: the dialects, and their references."""
