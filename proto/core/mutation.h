// Planted faults: switches that one build configuration compiles in (--config=mutations), so that
// tests/mutations/run can show which test finds which fault. In every other build STRATA_MUTATION
// is the constant false, and nothing of a switch is in the program.
//
//   if (step <= clock_ && !STRATA_MUTATION("bsp.old_step_gathered")) return GateVerdict::kOld;
//
// In sources alone, never in headers, of libraries that say `mutations = True`
// (tools/bazel/cc.bzl). Each name stands in the table of tests/mutations/README.md. Tested by
// tests/proto/core/mutation_test.cc
#ifndef STRATA_PROTO_CORE_MUTATION_H_
#define STRATA_PROTO_CORE_MUTATION_H_

#include "absl/strings/string_view.h"

namespace strata {

// Whether the environment variable STRATA_MUTATION names this fault: one in a process, read once.
// Any thread.
bool IsMutated(absl::string_view name);

}  // namespace strata

#ifdef STRATA_MUTATIONS
#define STRATA_MUTATION(name) ::strata::IsMutated(name)
#else
#define STRATA_MUTATION(name) false
#endif

#endif  // STRATA_PROTO_CORE_MUTATION_H_
