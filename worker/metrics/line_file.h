// A file of lines on a disk that may be full for a while.
#ifndef STRATA_WORKER_METRICS_LINE_FILE_H_
#define STRATA_WORKER_METRICS_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace strata {

// Lines that the disk does not take wait in memory and are written, in order, when it does; what is
// in the file is whole lines. One thread at a time.
class LineFile {
 public:
  // Of lines that wait; the oldest beyond it are lost.
  static constexpr size_t kMaxWaitingBytes = size_t{1} << 20;

  // Nothing is opened yet.
  explicit LineFile(std::string path) : path_(std::move(path)) {}
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Opens it for appending, made where missing. RESOURCE_EXHAUSTED: no room for that; Append tries
  // again. Other errors: this place is not one to write to.
  absl::Status Open();
  // Adds a line (without its newline). On error it waits with those before it.
  absl::Status Append(absl::string_view line);

  const std::string& path() const { return path_; }
  size_t waiting_lines() const { return waiting_.size(); }
  uint64_t lost_lines() const { return lost_; }

 private:
  absl::Status WriteWaiting();
  absl::Status Failed(int error) const;

  const std::string path_;
  int fd_ = -1;
  std::deque<std::string> waiting_;  // with their newlines
  size_t waiting_bytes_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_METRICS_LINE_FILE_H_
