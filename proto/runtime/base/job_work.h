// Work that a file system may hold up for ever, job by job, beside those who must not wait.
#ifndef STRATA_PROTO_RUNTIME_BASE_JOB_WORK_H_
#define STRATA_PROTO_RUNTIME_BASE_JOB_WORK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/base/timer.h"

namespace strata {

// A queue for each job. No job waits for another one's, and no call here waits for work. A piece
// runs in a thread that is made for it; pieces of a job begin in the order in which they were
// posted.
//
// A call into a hung mount cannot be ended from outside. So work is given up, not ended: a piece
// that may pass begins beside those that still run kPatience after it was posted, as long as the
// job has fewer than kMostThreads of them. Who posts it has told those to end (by a flag of its
// own, which they look at between their steps), and sees to it that what they do when they wake up
// harms nobody.
//
// Thread-safe. The destructor waits for all that was posted: work may use whatever outlives this
// object. A process that must end before that ends without it (proto/runtime/daemon/daemon.h).
class JobWork {
 public:
  enum class Begins : uint8_t {
    kInOrder,  // when all that was posted before it has ended
    kPassing,  // then, or after kPatience beside what has not
  };
  static constexpr size_t kMostThreads = 4;  // of one job
  // Longer than healthy disks take to close a job, since what is passed still holds its memory.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `timer` outlives this. Nothing of it is waited for: patience ends with the first Pump after it.
  explicit JobWork(Timer* timer);
  ~JobWork();
  JobWork(const JobWork&) = delete;
  JobWork& operator=(const JobWork&) = delete;

  // Set: nobody wants the work any more. Null: somebody always does.
  using Flag = std::shared_ptr<const std::atomic<bool>>;

  // Work that is not wanted when its turn comes is dropped; what has begun looks at the flag by
  // itself. The callers bound the number of pieces that wait.
  void Post(const std::string& job, Begins begins, std::function<void()> work,
            Flag cancelled = nullptr);
  // Begins what may begin by now. To be called from time to time.
  void Pump();

  struct Load {
    size_t running = 0;
    size_t waiting = 0;
    size_t passed = 0;  // of those that run: others have begun since
    bool held = false;  // the first that waits has done so for kPatience
  };
  Load Of(const std::string& job) const;
  // Of all jobs.
  Load Sum() const;
  // Waits until nothing runs or waits.
  void Drain();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // of the threads as well
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_JOB_WORK_H_
