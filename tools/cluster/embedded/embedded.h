// A job in one process: the scheduler, server and worker objects of a cluster over the in-process
// transport. What trains here trains on a cluster, bit for bit in bsp.
// Tested by tests/e2e/job_features_test.cc
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_EMBEDDED_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_EMBEDDED_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/strata/job.pb.h"

namespace strata {

struct EmbeddedOptions {
  // As read from the file; defaults are resolved here. Starts spec.replicas servers and workers.
  TrainingJob job;
  bool resume = false;
  bool overwrite = false;
  // Where it may read and write.
  PathPolicy paths = {};
  // Called about ten times a second, from the caller's thread. May be empty.
  std::function<void(const JobStatus&)> on_progress;
  // Called before anything else with what users should know, a line each: folders that earlier runs
  // left. May be empty.
  std::function<void(const std::string& line)> on_note = {};
  // Set by Ctrl-C: take a checkpoint, then return with state CANCELLED. May be null.
  std::atomic<bool>* stop = nullptr;
};

// Blocks until the job is in a final state and returns its status; a job that failed is an OK
// result with state FAILED. Errors: the job is refused (INVALID_ARGUMENT, FAILED_PRECONDITION), or
// its folders cannot be written. When it returns, nothing of the job is left but its outputs.
absl::StatusOr<JobStatus> RunEmbedded(const EmbeddedOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_EMBEDDED_H_
