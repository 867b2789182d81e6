// A job of this process stopped between two of its steps.
#ifndef STRATA_TESTS_E2E_P3_HOLD_H_
#define STRATA_TESTS_E2E_P3_HOLD_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::testing {

// Holds what shards of this process commit, from one commit on. Ends after the servers: they may
// wait in it. Any thread.
class Hold {
 public:
  // `first`: the first commit that is held, counting those of all shards from 1.
  explicit Hold(uint64_t first)
      : point_("server.commit.append", {.act = [this] { return Act(); }, .first_hit = first}) {}

  // Whether a commit waits.
  bool Reached() const;
  // Commits fail from now on, to be tried again: servers can be stopped, and no step is made.
  void Refuse() { Set(State::kRefusing); }
  // Steps are made, slowly.
  void Slow() { Set(State::kSlow); }
  // Commits wait again.
  void Again() { Set(State::kHolding); }
  void LetGo() { Set(State::kOpen); }

 private:
  enum class State { kHolding, kRefusing, kSlow, kOpen };
  absl::Status Act();
  void Set(State state);

  mutable absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kHolding;
  bool reached_ ABSL_GUARDED_BY(mu_) = false;
  ScopedFailpoint point_;  // the last member: armed when all others are there
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_P3_HOLD_H_
