// As prelude.h, for tests.
#include <catch2/catch.hpp>

#include "tools/bazel/prelude.h"
