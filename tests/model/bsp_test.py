"""Each configuration of bsp says what is expected of it."""

import cases

Configurations = cases.of_room("bsp")
