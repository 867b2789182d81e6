// What runs in one process (`strata train`) leave on disk when they are killed.
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_LEFTOVERS_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_LEFTOVERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

struct Leftover {
  std::string folder;
  uint64_t bytes = 0;
  // Whose it is, for people: "job small (1), server server-0".
  std::string whose;
  // A process uses it now.
  bool in_use = false;
  // Of a run in one process: nobody goes on with it. Else it is of a cluster, whose processes may
  // come back for it.
  bool abandoned = false;
};

// Jobs' folders in `directory` and one level below, and scratch folders in it. By name. NOT_FOUND,
// PERMISSION_DENIED.
absl::StatusOr<std::vector<Leftover>> FindLeftovers(const std::string& directory);

// "12.3 MiB".
std::string SizeText(uint64_t bytes);

// Removes one that nobody uses, with all that is in it. FAILED_PRECONDITION, UNAVAILABLE: somebody
// does by now.
absl::Status RemoveLeftover(const Leftover& leftover);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_LEFTOVERS_H_
