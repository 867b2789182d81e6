// How far the checkpoint is that is being written, and how long it will take.
#ifndef STRATA_SCHEDULER_JOB_CUTS_CUT_PROGRESS_H_
#define STRATA_SCHEDULER_JOB_CUTS_CUT_PROGRESS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"

namespace strata::scheduler {

// Bytes that were there at a moment.
struct ByteMark {
  absl::Time at;
  uint64_t bytes = 0;
};

// Seconds until `total` bytes are there at the rate from the first mark to the second. None where
// nothing came in between. Pure.
std::optional<double> SecondsLeft(const ByteMark& from, const ByteMark& to, uint64_t total);

// A pure machine: sums what servers say of cuts' files. Not recorded: servers repeat it. Memory:
// an entry for each pending cut and server.
class CutProgress {
 public:
  // A server's words on a cut at `now`, by server index. With no bytes they change nothing.
  void Report(uint64_t cut, uint32_t server, uint64_t written, uint64_t total, absl::Time now);
  // The server's process is another one: what it wrote is written again, and the rate of the
  // attempt before says nothing of this one.
  void ForgetServer(uint32_t server);
  struct View {
    uint64_t written = 0;
    uint64_t total = 0;  // as far as servers know; at least `written`
    std::optional<double> seconds_left;
  };
  // Of the oldest cut of which bytes are known; zeros: there is none.
  View At(absl::Time now) const;
  // Forgets the cuts of which `pending` says no: complete, or given up.
  template <typename Pending>
  void KeepOnly(const Pending& pending) {
    std::erase_if(cuts_, [&](const auto& cut) { return !pending(cut.first); });
  }

 private:
  struct Bytes {
    uint64_t written = 0, total = 0;
  };
  struct Cut {
    std::map<uint32_t, Bytes> servers;
    std::optional<ByteMark> first;  // from where the rate counts; none: the next word on it
  };
  static Bytes Sum(const Cut& cut);

  std::map<uint64_t, Cut> cuts_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CUTS_CUT_PROGRESS_H_
