"""Who decides which calls run, by name: the gate, and three adapters that are in a hurry."""

from raw_agent import Gate

from agentlib.stepper.hasty import ActsAtItemDone, ActsWhenItParses, FillsTheCut


class Hasty:
    """Drives one of the hasty adapters as the raw agent wants it."""

    adapter = ActsAtItemDone
    text = "done"

    def __init__(self, _api):
        self._adapter = self.adapter()

    def accept(self, event):
        return self._told(self._adapter.accept(event))

    def end(self, _done):
        return self._told(self._adapter.end())

    def _told(self, actions):
        # Text that is no object is more than even a hasty loop can hand to a tool.
        return [
            (action.call_id, action.name, action.arguments)
            for action in actions
            if isinstance(action.arguments, dict)
        ]


DECIDERS = {
    "gate": Gate,
    **{
        adapter.__name__: type(adapter.__name__, (Hasty,), {"adapter": adapter})
        for adapter in (ActsAtItemDone, ActsWhenItParses, FillsTheCut)
    },
}
