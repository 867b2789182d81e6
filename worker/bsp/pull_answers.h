// What the answers to the parts of one pull say of the whole.
#ifndef STRATA_WORKER_BSP_PULL_ANSWERS_H_
#define STRATA_WORKER_BSP_PULL_ANSWERS_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "worker/client/exchange.h"

namespace strata {

// A pull whose reply one message cannot carry goes in parts, by shards. The whole is over when
// every part is through: it was answered, or it broke. Whoever asked again at the first part that
// breaks would ask for those in flight, too, and the server would hold two replies of each. Every
// call ends by its timeout, so the whole does.
//
// The whole broke if some part did, whatever the others say: the caller asks again for what was not
// served. Else it is answered as a server answers for several shards: too old outweighs not yet,
// which outweighs served, and of several clocks to go on at the greatest counts. Unlike a push, it
// does not matter whether one process of the server gave all answers: what a shard has shown of a
// step, it has in every later process of the generation. A pure machine; one per call of the pull.
class PullAnswers {
 public:
  // The error is that of the first part that broke.
  using Whole = absl::StatusOr<Exchange::PullAnswer>;

  // REQUIRES: parts >= 1.
  explicit PullAnswers(size_t parts) : in_flight_(parts) {}

  // A part is through, with an answer or with the error that broke it. Returns that error, or
  // DATA_LOSS where the answer's outcome is none of a pull, which breaks the part as well.
  // REQUIRES: some part is in flight.
  absl::Status OnPart(const absl::StatusOr<Exchange::PullAnswer>& part);
  // Nothing: some part is in flight. The state of an answer is that of the last part answered, but
  // for the clock.
  std::optional<Whole> whole() const;

 private:
  size_t in_flight_;  // parts
  absl::Status broken_;
  wire::ServerState state_;
  bool not_yet_ = false;
  std::optional<Step> resume_;  // of the parts that are too old
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_PULL_ANSWERS_H_
