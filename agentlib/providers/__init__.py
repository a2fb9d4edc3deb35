"""One module for each API: from its native events to the vocabulary, and its request."""
