"""Each configuration of cut says what is expected of it."""

import cases

Configurations = cases.of_room("cut")
