// Whether a disk has become much slower than it was.
#ifndef STRATA_SERVER_PROTOCOL_SLOW_DISK_H_
#define STRATA_SERVER_PROTOCOL_SLOW_DISK_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace strata::server {

// A pure state machine: no threads, no clock. Writes of one kind, as those to an update log, take
// about as long as each other; the mean of a span is compared with the median of spans before.
class SlowDisk {
 public:
  static constexpr absl::Duration kSpan = absl::Seconds(5);
  // So many times as long is slow; half of that ends it. What lasts less than kLeast never is: on a
  // fast disk the page cache alone makes such differences.
  static constexpr double kTimes = 10;
  static constexpr absl::Duration kLeast = absl::Milliseconds(5);
  // Spans with writes before anything is called slow, and those that are remembered.
  static constexpr size_t kUsual = 3, kRemembered = 60;

  struct Verdict {
    absl::Time since;
    absl::Duration now, usual;  // of one write
  };

  void Began(absl::Time now);
  void Ended(absl::Duration lasted, absl::Time now);
  // None: it is as fast as ever. A write that does not end counts as well.
  std::optional<Verdict> Look(absl::Time now) const;

 private:
  void Close(absl::Time now);
  absl::Duration Usual() const;
  bool TooLong(absl::Duration lasted, absl::Duration usual) const {
    return lasted > kLeast && lasted > kTimes * usual;
  }

  std::optional<absl::Time> span_;    // when the span at hand began
  absl::Duration spent_;              // in it
  uint64_t writes_ = 0;               // in it
  std::deque<absl::Duration> spans_;  // means of those before, without slow ones
  std::optional<Verdict> slow_;       // by the last span
  uint64_t under_way_ = 0;            // writes
  absl::Time oldest_;                 // when the count of those last rose from 0, or one ended
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_SLOW_DISK_H_
