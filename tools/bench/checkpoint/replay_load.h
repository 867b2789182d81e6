// A shard whose updates all lie in the log, to be recovered.
#ifndef STRATA_TOOLS_BENCH_CHECKPOINT_REPLAY_LOAD_H_
#define STRATA_TOOLS_BENCH_CHECKPOINT_REPLAY_LOAD_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/job/plan.h"

namespace strata::bench {

class ReplayLoad {
 public:
  // One shard of 1 million rows of 16 floats, SGD; 36 windows of 100,000 of them, drawn at random:
  // 260 MB of log.
  static absl::StatusOr<ReplayLoad> Write(const std::string& folder);

  uint64_t log_bytes() const { return log_bytes_; }
  // Seconds of a recovery from nothing but the log, and of going through its records alone.
  absl::StatusOr<double> Recover() const;
  absl::StatusOr<double> Read() const;

 private:
  ReplayLoad(server::JobPlan plan, std::string folder)
      : plan_(std::move(plan)), folder_(std::move(folder)) {}

  server::JobPlan plan_;
  std::string folder_;
  uint64_t log_bytes_ = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CHECKPOINT_REPLAY_LOAD_H_
