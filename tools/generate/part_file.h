// A file that appears under its name only when it is complete, or a device that has it as it comes.
// Tested by tests/tools/generate/criteo_generator_test.cc
#ifndef STRATA_TOOLS_GENERATE_PART_FILE_H_
#define STRATA_TOOLS_GENERATE_PART_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/runtime/files/device_file.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Until Finish it is "PATH.part", which goes with the object, and which one process writes at a
// time: Open is FAILED_PRECONDITION for any other. What a killed one left is written anew. A link
// stays: PATH is where it leads. A device, a pipe and "-", standard output, are written to. Errors
// name the path. One thread.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path) {}
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  absl::Status Open();
  // After Open.
  bool to_device() const { return device_.is_open(); }
  absl::Status Write(const std::string& text);
  // Removes the file of that name that was there before, if there is one. REQUIRES: it is open, and
  // not a device.
  absl::Status RemoveOld();
  absl::Status Finish();

 private:
  FileSystem& files_ = FileSystem::Kernel();
  std::string path_;
  std::string part_;
  DeviceFile device_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_PART_FILE_H_
