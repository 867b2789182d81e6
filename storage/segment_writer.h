// Appends to one file of the update log, through the page cache or around it.
#ifndef STRATA_STORAGE_SEGMENT_WRITER_H_
#define STRATA_STORAGE_SEGMENT_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file_io.h"

namespace strata::storage {

// Either way a byte that Append took is in the operating system's hands and outlives this process.
enum class WriteMode : uint8_t {
  // write(2): the kernel copies into pages of its cache and writes them when it likes. Best for
  // small
  // appends, which it gathers.
  kBuffered,
  // O_DIRECT: whole blocks go to the device from memory of our own; the last, partial block is
  // padded
  // with zeros and written again by the next append. Best for big appends: the cache would take a
  // fresh
  // page for every 4 KiB that nobody reads again, and pages are not free (RESULTS.md, Wire).
  kDirect,
};

// One thread at a time.
class SegmentWriter {
 public:
  // Bytes that a direct writer takes at a time; what it holds of memory.
  static constexpr size_t kStagingBytes = size_t{4} << 20;

  SegmentWriter() = default;
  SegmentWriter(SegmentWriter&&) = default;
  SegmentWriter& operator=(SegmentWriter&&) = default;

  // A new, empty file; it must not exist. Where the file system knows no direct writes (tmpfs),
  // kDirect becomes kBuffered.
  static absl::StatusOr<SegmentWriter> Create(const std::string& path, WriteMode mode);
  // An existing file, to append behind its first `end` bytes; buffered.
  static absl::StatusOr<SegmentWriter> Open(const std::string& path, uint64_t end);

  WriteMode mode() const { return mode_; }
  // Bytes appended; the file may hold padding or the rest of a failed append behind them.
  uint64_t end() const { return end_; }

  // All parts or, on error, nothing: end() stays, and the next Append tries to cut off what was
  // written. `parts` is used up.
  absl::Status Append(std::span<iovec> parts);

  // Cuts off whatever lies behind end().
  absl::Status Trim();

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };

  absl::Status AppendDirect(std::span<iovec> parts);

  File file_;
  WriteMode mode_ = WriteMode::kBuffered;
  uint64_t end_ = 0;
  bool torn_ = false;  // bytes of a failed append may lie behind end_
  // Direct: kStagingBytes, aligned; its first end_ % block bytes are those of the last, partial
  // block.
  std::unique_ptr<uint8_t, Free> staging_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_SEGMENT_WRITER_H_
