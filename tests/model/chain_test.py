"""Each configuration of chain says what is expected of it."""

import cases

Configurations = cases.of_room("chain")
