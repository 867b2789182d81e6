// Places of a job that must not be the same: what it writes at one would destroy what it reads at
// another, or would be mixed with what it writes there.
#ifndef STRATA_PROTO_RUNTIME_FILES_JOB_PLACES_H_
#define STRATA_PROTO_RUNTIME_FILES_JOB_PLACES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/strata/job.pb.h"

namespace strata {

struct JobPlacesOptions {
  // The file that the job was read from, absolute; empty: none, or not seen from here.
  std::string job_file = {};
  // The job removes the checkpoints that are in spec.checkpoint.directory.
  bool overwrite = false;
  // Whether spec.storage.directory may be looked at. It is the servers' own, and may hang
  // elsewhere; without looks it is told by its name alone.
  enum class Storage : uint8_t { kLook, kName };
  Storage storage = Storage::kLook;
  // Called with the field and the path that are looked at next.
  std::function<void(absl::string_view field, const std::string& path)> looking_at = {};
};

// Files are the same by device and inode, and what is not there yet by the way that links lead; so
// any spelling and hard links are seen. What cannot be looked at is told by its name. Devices and
// pipes keep nothing: they may be named as often as one likes.
// INVALID_ARGUMENT: names both fields and both paths, in one line.
absl::Status CheckJobPlaces(const JobSpec& spec, const JobPlacesOptions& options = {},
                            FileSystem& files = FileSystem::Kernel());

// A file that a job or a program will write, or has on its way. `field` names what gives it: a
// field of the job, or an option.
struct WrittenFile {
  std::string field, path;
};

// spec.output.metrics and spec.output.predictions, under all names that they have on their way.
std::vector<WrittenFile> FilesWritten(const JobSpec& spec,
                                      FileSystem& files = FileSystem::Kernel());

// FAILED_PRECONDITION: `output`, a file that a program is to write, is one of those that it reads.
absl::Status CheckNoInput(absl::string_view option, const std::string& output,
                          const std::vector<std::string>& inputs,
                          FileSystem& files = FileSystem::Kernel());

// For programs that write to `output` (a file or a folder) and read the checkpoint in `folder`.
// FAILED_PRECONDITION: it is that folder, or lies in it. `option` names the output.
absl::Status CheckOutsideCheckpoint(absl::string_view option, const std::string& output,
                                    const std::string& folder,
                                    FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_JOB_PLACES_H_
