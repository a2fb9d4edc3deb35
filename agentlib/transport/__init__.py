"""From bytes to native events, and from a recording back to both. Nothing here decides."""
