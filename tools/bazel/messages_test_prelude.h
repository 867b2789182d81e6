// As messages_prelude.h, for tests.
#include <catch2/catch.hpp>

#include "tools/bazel/messages_prelude.h"
