"""Each configuration of move says what is expected of it."""

import cases

Configurations = cases.of_room("move")
