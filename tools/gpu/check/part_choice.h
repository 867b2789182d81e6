// Which of the parts a run does: --parts and --skip.
// Tested by tests/tools/gpu/check/part_list_test.cc
#ifndef STRATA_TOOLS_GPU_CHECK_PART_CHOICE_H_
#define STRATA_TOOLS_GPU_CHECK_PART_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/gpu/check/part_list.h"

namespace strata::gpu_check {

// Lists of words with commas between them: a kind ("test", "bar", "memcheck", "racecheck") means
// all parts of it; a name ("mlp", "pool_test") each part that has it; both ("memcheck pool_test")
// one.
struct PartChoice {
  std::string parts;  // "": all
  std::string skip;   // of those; "": none
};

// In the order of `all`. The search for a device always stays. kInvalidArgument: the flag, the word
// that means nothing, and all that mean something; or that nothing is left.
absl::StatusOr<std::vector<PartEntry>> ChooseParts(const std::vector<PartEntry>& all,
                                                   const PartChoice& choice);

// "mlp, dlrm, gather, ...": bars, then test binaries.
std::string PartWords(const std::vector<PartEntry>& all);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_PART_CHOICE_H_
