// Jobs that take the locks of checkpoint directories, and what those say.
#ifndef STRATA_TESTS_SCHEDULER_LOCK_OWNER_H_
#define STRATA_TESTS_SCHEDULER_LOCK_OWNER_H_

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"

namespace strata::scheduler {

inline constexpr absl::Duration kLease = absl::Seconds(10);  // what Start gives

// A scheduler that ends as a killed process does: its lock stays.
inline std::unique_ptr<Scheduler> Of(ManualTimer* timer) {
  return Start(MakeMemoryMetadataStore(), timer);
}

inline SubmitRequest Cutting(const std::string& name, const std::string& directory) {
  SubmitRequest request = Job(name, directory);
  request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_every_steps(4);
  return request;
}

inline CheckpointLock LockOf(const std::string& directory, int number) {
  CheckpointLock lock;
  REQUIRE(ReadRecordFile(directory + "/LOCK." + std::to_string(number), "lock", &lock).ok());
  return lock;
}

// Submits while the timer moves: what a submission waits for is that.
template <typename Meanwhile>
absl::StatusOr<SubmitReply> SubmitWaiting(Scheduler& scheduler, const SubmitRequest& request,
                                          ManualTimer& timer, Meanwhile meanwhile) {
  absl::StatusOr<SubmitReply> reply;
  bool done = false;
  std::thread submit([&] {
    reply = scheduler.Submit(request, kTimeout);
    timer.At(timer.Now(), &done, [&] { done = true; });
  });
  while (!done) {
    timer.AwaitAlarms(1);
    timer.AdvanceTo(timer.next());
    meanwhile();
  }
  submit.join();
  return reply;
}

}  // namespace strata::scheduler

#endif  // STRATA_TESTS_SCHEDULER_LOCK_OWNER_H_
