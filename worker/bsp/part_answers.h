// What the answers to the parts of a push say of the whole, over its tries.
#ifndef STRATA_WORKER_BSP_PART_ANSWERS_H_
#define STRATA_WORKER_BSP_PART_ANSWERS_H_

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "proto/core/ids.h"
#include "worker/bsp/lane_driver.h"

namespace strata {

// A push that one message cannot carry goes in parts, by shards. An OK holds for the identity that
// gave it only: a part that a server had taken when it began again is not there any more, whatever
// the next process of that server says of the other parts. So the whole is accepted when the
// identity that answered last has taken all shards.
//
// A try is over when every part of it is through: it was accepted, or it broke. Every call ends by
// its timeout, so the try does. Then the parts that the last identity has not taken go again, and
// no others: a server holds what it took until the step is committed, and where it is busy it may
// never have room for that a second time. What was accepted as a whole and is due again goes whole:
// the driver doubts all that the server has.
//
// A pure machine; one for each server, to which LaneDriver has at most one push on its way.
class PartAnswers {
 public:
  using Part = std::vector<ShardId>;
  enum class Whole : uint8_t {
    kOpen,      // some part is in flight
    kAccepted,  // the last identity has all
    kAgain,     // it has not: push again
  };

  // A try of the push that carries this number begins. `parts` are of all shards of the server,
  // each once; earlier tries may have had other ones. Returns which of them go, at least one.
  // REQUIRES: the try before is over.
  std::vector<bool> Begin(Sequence push, std::span<const Part> parts);
  // A part that went is through.
  Whole OnAccepted(const Part& part, ServerIdentity identity);
  Whole OnBroken() { return OnThrough(); }

 private:
  Whole OnThrough();

  Sequence push_;
  size_t shards_ = 0;                       // of the server
  size_t in_flight_ = 0;                    // parts
  std::optional<ServerIdentity> identity_;  // the last one
  std::set<ShardId> taken_;                 // by it, of this push
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_PART_ANSWERS_H_
