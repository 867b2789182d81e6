// One part that gpu_check does itself, in a process of its own: what there is, or a bar.
// Tested by tests/tools/gpu/check/part_list_test.cc
#ifndef STRATA_TOOLS_GPU_RUN_PART_H_
#define STRATA_TOOLS_GPU_RUN_PART_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

struct PartOptions {
  std::string name;   // "device", or of a bar: tools/gpu/check/part_list.h
  bool host = false;  // host threads at tiny sizes: shows that the program works, not how fast
  // Examples of the dlrm bar's batch on host threads (BusyHostSizes); 0: tiny.
  uint32_t host_batch = 0;
  std::string blas_library;  // instead of the search
  double seconds = 90;       // after which nobody waits for it any more
};

// Tells `say` what tools/gpu/check/part_output.h says, and returns the process's exit code:
// kPartSkipped where the device or a library is missing, 1 after any other error, 2 where there is
// no such part.
int RunPart(const PartOptions& options, const std::function<void(const std::string&)>& say);

// The bars that RunPart knows.
std::vector<std::string> BarNames();

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_RUN_PART_H_
