// Where predictions are written, and under which names on their way there: one rule for who writes
// them and for who looks that nothing else lies there.
// Tested by tests/proto/runtime/files/job_places_test.cc
// Tested by tests/worker/eval/boundary_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_PREDICTION_NAMES_H_
#define STRATA_PROTO_RUNTIME_FILES_PREDICTION_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// What an output of some name is written to.
struct PredictionsPlace {
  std::string path;  // as it was given, or where links lead to: no link itself, but for a device's
  // Written to, not replaced: a pipe or a device, or a link in /dev or /proc, which stands for what
  // a process has open (/dev/stdout).
  bool device = false;
};

// FAILED_PRECONDITION: links in a circle. What is not there is a file.
absl::StatusOr<PredictionsPlace> PlaceOfPredictions(const std::string& path,
                                                    FileSystem& files = FileSystem::Kernel());

// The same for the file that a program's user names as `option`; "-" is standard output.
// INVALID_ARGUMENT: no name, or a folder; NOT_FOUND: in no folder.
absl::StatusOr<PredictionsPlace> PlaceOfOutput(absl::string_view option, const std::string& path,
                                               FileSystem& files = FileSystem::Kernel());

// What a job's predictions are until they are the best so far is an unfinished file of this name
// (OpenUnfinished): who replaces a worker that was lost writes beside one that is only slow. In
// earlier versions they waited under this name itself.
std::string NextPredictions(const std::string& path);
// Where those of `strata predict` are until they are whole.
std::string UnfinishedPredictions(const std::string& path);

// All names under which something is written until `path` is there; `path` is the first.
std::vector<std::string> NamesInTraining(const std::string& path);
std::vector<std::string> NamesInPredict(const std::string& path);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_PREDICTION_NAMES_H_
