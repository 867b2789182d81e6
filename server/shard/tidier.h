// Background work of a shard's tables between requests: rows that are next to leave DRAM are
// written below ahead of need, within a share of the executor's time and of the disk.
#ifndef STRATA_SERVER_SHARD_TIDIER_H_
#define STRATA_SERVER_SHARD_TIDIER_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"

namespace strata::server {

// Touched on the shard's executor only, which runs a slice of at most kSliceRows rows at a time:
// what was posted meanwhile comes before the next slice. After a slice of duration d the next one
// begins (1 / kShare - 1) * d later at the earliest, and not before bytes_per_second allows. When
// nothing is left to do, or the disk fails, it rests until it is woken: foreground work meets the
// same error and says so.
class Tidier {
 public:
  static constexpr size_t kSliceRows = 1024;
  static constexpr double kShare = 0.1;  // of the executor's time
  // Of the disk, over the shards of a job on one server.
  static constexpr double kJobBytesPerSecond = double{1 << 26};

  struct Options {
    Timer* timer = nullptr;
    const void* owner = nullptr;  // who cancels at the timer
    double bytes_per_second = kJobBytesPerSecond;
    // Posts to the executor, or drops the work for good.
    std::function<void(std::function<void()>)> post;
    // Writes at most so many rows of each table; returns their bytes, 0 when there is nothing to
    // do.
    std::function<absl::StatusOr<uint64_t>(size_t rows)> tidy;
    std::function<void()> failed;  // the disk, once for each slice
  };

  explicit Tidier(Options options);

  // After whatever may have changed rows. Cheap where a slice is due already.
  void Wake();

 private:
  void Later(absl::Time when);
  void Slice();

  const Options options_;
  bool due_ = false;  // a slice is posted, or waits for its time
  absl::Time not_before_ = absl::InfinitePast();
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_TIDIER_H_
