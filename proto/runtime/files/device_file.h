// Devices, pipes and standard output, which are written to and never replaced.
#ifndef STRATA_PROTO_RUNTIME_FILES_DEVICE_FILE_H_
#define STRATA_PROTO_RUNTIME_FILES_DEVICE_FILE_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

// For programs whose user names one, as a PlaceOfPredictions (prediction_names.h) that is a device;
// a job names none. Each text is out when Append returns. One thread at a time.
class DeviceFile {
 public:
  DeviceFile() = default;
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;
  ~DeviceFile();

  // A path of "-" is standard output. Waits for who reads a pipe.
  absl::Status Open(const std::string& path);
  bool is_open() const { return file_ != nullptr; }
  // INTERNAL: it cannot be written to. Where nobody reads any more, that is `reader_left`, and
  // SIGPIPE is ignored.
  absl::Status Append(absl::string_view text);
  absl::Status Finish();

  bool reader_left() const { return reader_left_; }

 private:
  absl::Status Error(int error);

  std::string path_;
  std::FILE* file_ = nullptr;
  bool reader_left_ = false;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_DEVICE_FILE_H_
