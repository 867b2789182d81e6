// What the answers to the parts of one pull say of the whole.
#ifndef STRATA_WORKER_BSP_PULL_ANSWERS_H_
#define STRATA_WORKER_BSP_PULL_ANSWERS_H_

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "worker/client/exchange.h"

namespace strata {

// A pull whose reply one message cannot carry goes in parts, by shards. The whole is answered when
// all parts are, and then as a server answers for several shards: too old outweighs not yet, which
// outweighs served, and of several clocks to go on at the greatest counts. Unlike a push, it does
// not matter whether one process of the server gave all answers: what a shard has shown of a step,
// it has in every later process of the generation. A pure machine; one per call of the pull.
class PullAnswers {
 public:
  // REQUIRES: parts >= 1.
  explicit PullAnswers(size_t parts) : parts_(parts), missing_(parts) {}

  size_t parts() const { return parts_; }
  // A part was answered. Nothing: some part has no answer yet. The whole's state is the last
  // answer's, but for the clock. DATA_LOSS: that is no outcome of a pull.
  absl::StatusOr<std::optional<Exchange::PullAnswer>> OnAnswer(const Exchange::PullAnswer& part);

 private:
  const size_t parts_;
  size_t missing_;
  bool not_yet_ = false;
  std::optional<Step> resume_;  // of the parts that are too old
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_PULL_ANSWERS_H_
