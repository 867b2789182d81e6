// The last thing that g++ reads of what prelude.bzl parses once (instantiate.cc).
#pragma strata instantiate
