// The parts of part_list.h as child processes, so that one that hangs, crashes or loses the device
// harms no other; and what their ends and outputs mean.
#ifndef STRATA_TOOLS_GPU_CHECK_CHECK_H_
#define STRATA_TOOLS_GPU_CHECK_CHECK_H_

#include <string>
#include <vector>

#include "tools/gpu/check/part_list.h"
#include "tools/gpu/report/schedule.h"

namespace strata::gpu_check {

struct CheckOptions {
  std::string self;      // the program that knows `--part NAME`
  std::string programs;  // the folder of test binaries
  std::string logs;      // a folder: logs of children, one a part, LogName
  std::string archive;   // where whoever reads of them finds them afterwards; "": there
  std::string path;      // the variable PATH: where compute-sanitizer is looked for first
  std::string toolkit = "/usr/local/cuda";  // and then in its bin
  std::vector<std::string> part_arguments;  // beside --part NAME
  std::vector<std::string> environment;     // of every child: "NAME=value"
};

// The file of a part's log: "test-pool_test.log".
std::string LogName(const std::string& part);

// One part for each entry, in their order. Test binaries and tools that are not there make their
// parts missing.
std::vector<PlannedPart> PlanChecks(const std::vector<PartEntry>& entries,
                                    const CheckOptions& options);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_CHECK_H_
