// How much of its file system the jobs of a server have, and how much is free there.
#ifndef STRATA_SERVER_DISK_ROOM_H_
#define STRATA_SERVER_DISK_ROOM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/files/file_system.h"

namespace strata::server {

// Bytes that the files below a folder take on the folder's file system, as far as they can be seen:
// a file of several names once, and nothing for what it has not been given yet.
uint64_t BytesOnDisk(const std::string& folder, FileSystem& files = FileSystem::Kernel());

// Looks from time to time, in a thread of its own: what is free and what jobs have are of one
// moment, since either alone changes with each write. No call waits for files, but for Begin and
// the destructor. Begin and Tend come from one thread, Now from any.
class DiskRoom {
 public:
  // A look is that much later than the one before, unless there are other jobs by then.
  static constexpr absl::Duration kAgain = absl::Seconds(30);
  // What changed by less than this part of all is not told: texts and records stand still.
  static constexpr uint64_t kStill = 256;

  struct Use {
    uint64_t free = 0;                       // at least 1 where it is known
    uint64_t jobs = 0;                       // bytes of all of them
    std::map<std::string, uint64_t> by_job;  // by what Tend calls them
  };

  // `folder` is on the file system that is meant. `timer` outlives this.
  DiskRoom(std::string folder, Timer* timer);
  ~DiskRoom();
  DiskRoom(const DiskRoom&) = delete;
  DiskRoom& operator=(const DiskRoom&) = delete;

  // What is free now.
  void Begin();
  // Time passes. `folders`: those of jobs that it is to count, by job.
  void Tend(const std::map<std::string, std::string>& folders);
  Use Now() const;

 private:
  struct State;
  const std::string folder_;
  Timer* const timer_;
  const std::shared_ptr<State> state_;
  std::map<std::string, std::string> looked_;  // the last time
  absl::Time next_ = absl::InfinitePast();
  JobWork work_;  // last: what it does uses all of the above
};

}  // namespace strata::server

#endif  // STRATA_SERVER_DISK_ROOM_H_
