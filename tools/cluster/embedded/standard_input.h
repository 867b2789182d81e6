// Training data from standard input.
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_STANDARD_INPUT_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_STANDARD_INPUT_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/reading/data_access.h"

namespace strata {

// Copies everything that can be read from `fd` to a new file `path`, which is then read like any
// other: training reads its input in many places, several times. CANCELLED: `stop` (may be null)
// was set. RESOURCE_EXHAUSTED: no room there; other errors: the file or `fd` cannot be used. The
// messages name the path.
absl::Status SpoolInput(int fd, const std::string& path, const std::atomic<bool>* stop);

// Spools standard input into the folder and gives a way to files where "-" stands for it.
absl::StatusOr<std::unique_ptr<DataAccess>> SpoolStandardInput(const std::string& folder,
                                                               const std::atomic<bool>* stop);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_STANDARD_INPUT_H_
