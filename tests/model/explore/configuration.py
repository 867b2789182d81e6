"""A configuration: a model with sizes and faults, and what an exploration of it must say."""

from typing import NamedTuple

from explore.explorer import LIMIT, explore


class Configuration(NamedTuple):
    """Names with x_ drop one rule. The others drop none, and break no promise."""
    model: type
    parameters: dict
    breaks: str = ""    # the promise that must break, shortest trace first; "" for none
    needless: str = ""  # of one with x_ that breaks nothing: why the rule is not needed there
    long: bool = False  # explored under --long alone

    def explore(self, changes=None, limit=LIMIT):
        """A Result. `changes`: parameters that are others this once."""
        return explore(self.model(**dict(self.parameters, **(changes or {}))), limit)
