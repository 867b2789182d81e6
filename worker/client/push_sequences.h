// The numbers that a worker's pushes and marks carry (data.proto, "sequence").
#ifndef STRATA_WORKER_CLIENT_PUSH_SEQUENCES_H_
#define STRATA_WORKER_CLIENT_PUSH_SEQUENCES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "proto/core/ids.h"

namespace strata {

// Numbers from 1, each given once. Thread-safe. A worker has one for its whole life: a job that it
// closes and opens again, and all lanes of a job, speak in one session.
class SequenceCounter {
 public:
  Sequence Next() { return Sequence(1 + last_.fetch_add(1, std::memory_order_relaxed)); }

 private:
  std::atomic<uint64_t> last_{0};
};

// Synchronous training: which number a push carries. The sums of one set of lanes at one step have
// one number, to whichever server they go and however often; other lanes of the step, be they some
// of the same ones in another grouping, are another message and get another number.
//
// A pure machine, one thread at a time. Holds a number for every push of the at most two steps that
// a worker keeps.
class PushSequences {
 public:
  // `counter` outlives this.
  explicit PushSequences(SequenceCounter* counter) : counter_(counter) {}

  // `lanes` ascending.
  Sequence Of(Step step, const std::vector<uint32_t>& lanes);
  // Steps below `step` are over.
  void DropBelow(Step step);

 private:
  SequenceCounter* const counter_;
  std::map<std::pair<Step, std::vector<uint32_t>>, Sequence> given_;
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_PUSH_SEQUENCES_H_
