#include "scheduler/job/concerns/job_view.h"

#include "absl/strings/str_cat.h"

namespace strata::scheduler {

std::string NameOf(NodeRole role, absl::string_view name) {
  return absl::StrCat(role == SERVER ? "server/" : "worker/", name);
}

}  // namespace strata::scheduler
