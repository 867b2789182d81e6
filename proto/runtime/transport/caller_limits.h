// How much one caller may ask at once, and how often: so that a broken or hostile one holds up
// nobody else.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_CALLER_LIMITS_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_CALLER_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/caller.h"

namespace strata {

struct CallerLimitsOptions {
  // A worker has a few calls for each lane and server.
  uint32_t calls_in_flight = 2048;
  // Of requests that are not answered, and of replies that are not written: a caller who reads none
  // has no more of them held. One of either is always taken, however long it is.
  uint64_t bytes_in_flight = uint64_t{2} << 30;
  // On average; twice as many may come at once.
  uint32_t calls_a_second = 50000;
  Clock* clock = Clock::Real();  // outlives the limits
};

// Thread-safe. Callers go by role and name; at most kMostIdle that ask nothing are remembered.
class CallerLimits : public std::enable_shared_from_this<CallerLimits> {
 public:
  static constexpr size_t kMostIdle = 4096;
  // So long a reply is always taken: that something was done is worth telling.
  static constexpr uint64_t kShortReply = 4096;

  explicit CallerLimits(const CallerLimitsOptions& options) : o_(options) {}

  // A call that was let in; its end makes room for another one.
  class Admitted {
   public:
    Admitted(std::shared_ptr<CallerLimits> limits, std::string who, uint64_t bytes)
        : limits_(std::move(limits)), who_(std::move(who)), bytes_(bytes) {}
    ~Admitted() { limits_->End(who_, bytes_); }
    Admitted(const Admitted&) = delete;
    Admitted& operator=(const Admitted&) = delete;

    // The call's bytes are those of its reply from now on, and no more those of its request. Once.
    // RESOURCE_EXHAUSTED: others of the caller's are not written yet; the reply is to be dropped.
    absl::Status Reply(uint64_t bytes) { return limits_->Reply(who_, bytes, bytes_); }

   private:
    const std::shared_ptr<CallerLimits> limits_;
    const std::string who_;
    uint64_t bytes_;
  };

  // RESOURCE_EXHAUSTED: the text names the caller and the limit. Null: nobody was asked who he is,
  // and nobody is limited.
  absl::StatusOr<std::shared_ptr<Admitted>> Begin(const Caller& caller, uint64_t bytes);

 private:
  struct Use {
    uint32_t calls = 0;
    uint64_t bytes = 0;
    double tokens = 0;  // calls that may come at once; 0 to twice calls_a_second
    absl::Time filled;
  };

  absl::Status Reply(const std::string& who, uint64_t bytes, uint64_t& held);
  void End(const std::string& who, uint64_t bytes);
  uint64_t Left(uint64_t taken) const;
  absl::Status BeyondBytes(const std::string& who) const;
  void ForgetIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const CallerLimitsOptions o_;
  Mutex mu_;
  std::map<std::string, Use> uses_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_CALLER_LIMITS_H_
