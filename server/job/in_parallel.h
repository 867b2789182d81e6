// The same work for several things, on all cores.
// Tested by tests/server/job/restore_test.cc
#ifndef STRATA_SERVER_JOB_IN_PARALLEL_H_
#define STRATA_SERVER_JOB_IN_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace strata::server {

// Calls work(0) ... work(n - 1), each once, on at most as many threads as the machine has cores,
// and waits. Returns the error of the smallest i; after an error no more are begun.
absl::Status InParallel(size_t n, const std::function<absl::Status(size_t)>& work);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_IN_PARALLEL_H_
