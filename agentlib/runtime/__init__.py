"""From a history to an outcome: ask a model for one decision, run its calls, ask again."""
