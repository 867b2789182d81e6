// The table of what gpu_check does, in its order: what there is, the bars of products and of a
// whole job, correctness, the other bars, and the correctness of memory accesses.
#ifndef STRATA_TOOLS_GPU_CHECK_PART_LIST_H_
#define STRATA_TOOLS_GPU_CHECK_PART_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace strata::gpu_check {

enum class PartKind : uint8_t {
  kDevice,     // gpu_check itself: what there is
  kTest,       // a test binary
  kBar,        // gpu_check itself: tools/gpu/run_part.h
  kMemcheck,   // a test binary under compute-sanitizer
  kRacecheck,  // the same
};

struct PartEntry {
  PartKind kind = PartKind::kTest;
  std::string name;  // "test apply_test"
  std::string
      program;  // of a test: its file in the bundle; of a bar: its name in tools/gpu/run_part.h
  std::string label;  // of a test: what Bazel builds, "//tests/ops/cuda/rows:apply_test"
  double least_seconds = 0, most_seconds = 0;
  std::string missing;  // why no build has it yet; "": there it is
};

// In the order in which they are run. Names are unique.
std::vector<PartEntry> AllParts();

// The labels of all test binaries that a bundle holds, each once.
std::vector<std::string> TestLabels();

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_PART_LIST_H_
