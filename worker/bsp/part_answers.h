// What the answers to the parts of one push say of the whole.
#ifndef STRATA_WORKER_BSP_PART_ANSWERS_H_
#define STRATA_WORKER_BSP_PART_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "worker/bsp/lane_driver.h"

namespace strata {

// A push that one message cannot carry goes in parts, by shards. An OK holds for the identity that
// gave it only: a part that a server had taken when it began again is not there any more, whatever
// the next process of that server says of the other parts. So the whole is accepted when all parts
// were, by one identity. A pure machine; one per call of the push.
class PartAnswers {
 public:
  enum class Whole : uint8_t {
    kOpen,      // some part has no answer yet
    kAccepted,  // all are where the last answer came from
    kMixed,     // some are not: push again
  };

  // REQUIRES: parts >= 1.
  explicit PartAnswers(size_t parts) : missing_(parts) {}

  // A part was accepted by this identity. REQUIRES: it said kOpen so far.
  Whole OnAccepted(ServerIdentity identity);

 private:
  size_t missing_;
  std::optional<ServerIdentity> first_;
  bool mixed_ = false;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_PART_ANSWERS_H_
