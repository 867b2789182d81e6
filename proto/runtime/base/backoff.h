// How long to wait before the next try: exponential, bounded, and spread, so that many who lost the
// same thing at one moment do not come back at one moment. Pure.
#ifndef STRATA_PROTO_RUNTIME_BASE_BACKOFF_H_
#define STRATA_PROTO_RUNTIME_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/runtime/base/id_source.h"

namespace strata {

// Drawn evenly from [wait / 2, 3 wait / 2): `wait` on average. `random` null: `wait` itself.
absl::Duration Spread(absl::Duration wait, IdSource* random);

// Counts failures in a row. One thread at a time.
class Backoff {
 public:
  struct Options {
    absl::Duration first;
    absl::Duration most;
    // Outlives the object. Null: waits are not spread (simulations; tests of what is awaited).
    IdSource* random = IdSource::System();
  };
  explicit Backoff(const Options& options) : o_(options) {}

  // The wait after one more failure: first, 2 x first, 4 x first ... most, each Spread.
  absl::Duration OnFailure();
  void OnSuccess() { failures_ = 0; }
  uint32_t failures() const { return failures_; }

 private:
  Options o_;
  uint32_t failures_ = 0;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_BACKOFF_H_
