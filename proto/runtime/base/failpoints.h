// Named places in the code where a test can make something go wrong: an error, a wait, or the end
// or standstill of the process. Compiled in always; a place that nobody armed costs one load.
//
//   absl::Status s = Failpoint("log.append");       // in the code under test
//   if (!s.ok()) return s;
//
//   ScopedFailpoint fail("log.append", {.act = FailWith(absl::UnavailableError("disk gone"))});
//
// A process takes them from its flag --failpoints,
// "log.append=error(UNAVAILABLE)@3*1;commit=kill@2".
#ifndef STRATA_PROTO_RUNTIME_BASE_FAILPOINTS_H_
#define STRATA_PROTO_RUNTIME_BASE_FAILPOINTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

struct FailpointPlan {
  // What a hit does, in the thread that hits; its status is what Failpoint returns. May block.
  std::function<absl::Status()> act;
  // Counting from 1 when armed: the first hit that acts, how many act, and how many hits lie from
  // one of them to the next.
  uint64_t first_hit = 1;
  uint64_t hits = std::numeric_limits<uint64_t>::max();
  uint64_t every = 1;
};

// Actions. Kill sends SIGKILL to the process itself, as a crash would end it; Exit leaves by
// _exit(code). Neither flushes anything. Stop sends it SIGSTOP: all its threads stand still until
// somebody sends SIGCONT, then the hit returns OK.
std::function<absl::Status()> FailWith(absl::Status status);
std::function<absl::Status()> Kill();
std::function<absl::Status()> Stop();
std::function<absl::Status()> Exit(int code);

// Replaces what the name was armed with. All functions may be called from any thread.
void ArmFailpoint(absl::string_view name, FailpointPlan plan);
void DisarmFailpoint(absl::string_view name);
void DisarmAllFailpoints();
// Hits since the name was armed; 0 when it is not.
uint64_t FailpointHits(absl::string_view name);

// "name=action[@first_hit][*hits][/every]" separated by ';', where action is error(CODE), kill,
// stop or exit(N). Empty text arms nothing. INVALID_ARGUMENT names the part that is wrong; nothing
// is armed then.
absl::Status ArmFailpointsFromText(absl::string_view text);

class ScopedFailpoint {
 public:
  ScopedFailpoint(std::string name, FailpointPlan plan) : name_(std::move(name)) {
    ArmFailpoint(name_, std::move(plan));
  }
  ~ScopedFailpoint() { DisarmFailpoint(name_); }
  ScopedFailpoint(const ScopedFailpoint&) = delete;
  ScopedFailpoint& operator=(const ScopedFailpoint&) = delete;

 private:
  const std::string name_;
};

namespace failpoints_internal {
extern std::atomic<int> armed;  // names armed now
absl::Status Hit(absl::string_view name);
}  // namespace failpoints_internal

// OK unless `name` is armed and this hit acts.
inline absl::Status Failpoint(absl::string_view name) {
  if (failpoints_internal::armed.load(std::memory_order_relaxed) == 0) return absl::OkStatus();
  return failpoints_internal::Hit(name);
}

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_FAILPOINTS_H_
