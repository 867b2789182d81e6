// Work on files that a job asks for: whoever drives its state machine does it.
// Tested by tests/scheduler/job/file_queue_test.cc
#ifndef STRATA_SCHEDULER_JOB_FILE_WORK_H_
#define STRATA_SCHEDULER_JOB_FILE_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "proto/runtime/files/leftovers.h"
#include "proto/strata/checkpoint.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct WriteManifestWork {
  uint64_t job = 0;
  uint64_t cut = 0;
  std::string folder;
  Manifest manifest;
};
// Each removal is recorded under its number until Removed is called for it: a restart does it
// again.
struct RemoveCheckpointWork {
  uint64_t job = 0;
  uint64_t number = 0;
  std::string folder;
  // What the folder held when the removal was asked for. Another one stays; nothing: what could not
  // be read then, so that whatever can be is another one.
  std::optional<CheckpointIdentity> meant = std::nullopt;
};
// A file of lines that this job begins anew, if it is there.
struct EmptyFileWork {
  uint64_t job = 0;
  uint64_t number = 0;
  std::string path;
};
// What cuts that were given up left there.
struct RemoveLeftoversWork {
  uint64_t job = 0;
  uint64_t number = 0;  // of this look; ascending
  std::string directory;
  CutsOver over;
};
// The run came to its end at a checkpoint whose manifest was written before that was known.
struct EndRunWork {
  uint64_t job = 0;
  std::string folder;
  CheckpointIdentity meant;  // another one stays as it is
  DataProgress end;          // for TrainedData.end of its manifest
};
using FileWork = std::variant<WriteManifestWork, RemoveCheckpointWork, EmptyFileWork,
                              RemoveLeftoversWork, EndRunWork>;

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_FILE_WORK_H_
