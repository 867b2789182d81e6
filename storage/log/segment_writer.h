// Appends to one file of the update log, through the page cache or around it.
#ifndef STRATA_STORAGE_LOG_SEGMENT_WRITER_H_
#define STRATA_STORAGE_LOG_SEGMENT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/file_io.h"
#include "storage/io/huge_memory.h"

namespace strata::storage {

// Either way a byte that Append took is in the operating system's hands and outlives this process.
enum class WriteMode : uint8_t {
  // write(2): the kernel copies into pages of its cache and writes them when it likes. Best for
  // small appends, which it gathers.
  kBuffered,
  // O_DIRECT: whole blocks go to the device from memory of our own. Best for big appends: the cache
  // would take a fresh page for every 4 KiB that nobody reads again, and pages are not free
  // (RESULTS.md, Wire).
  kDirect,
};

// One thread at a time.
class SegmentWriter {
 public:
  // Alignment of memory, place and length that every device accepts.
  static constexpr size_t kBlock = 4096;
  // What a direct writer holds of memory once it was given pieces that are not such.
  static constexpr size_t kStagingBytes = size_t{4} << 20;

  SegmentWriter() = default;
  SegmentWriter(SegmentWriter&&) = default;
  SegmentWriter& operator=(SegmentWriter&&) = default;

  // A new, empty file; it must not exist. Where the file system knows no direct writes (tmpfs),
  // kDirect becomes kBuffered. `files` outlives the writer.
  static absl::StatusOr<SegmentWriter> Create(const std::string& path, WriteMode mode,
                                              FileSystem& files = FileSystem::Kernel());
  // An existing file, to append behind its first `end` bytes; buffered.
  static absl::StatusOr<SegmentWriter> Open(const std::string& path, uint64_t end,
                                            FileSystem& files = FileSystem::Kernel());

  WriteMode mode() const { return mode_; }
  // Bytes appended; the file may hold the rest of a failed append behind them.
  uint64_t end() const { return end_; }
  // False: somebody removed the file.
  bool HasName() const { return file_.HasName(); }

  // All parts or, on error, nothing: end() stays, and the next Append tries to cut off what was
  // written. `parts` is used up. REQUIRES: of a direct writer, whole blocks in all; parts that are
  // whole blocks themselves, in memory aligned to blocks, are not copied.
  absl::Status Append(std::span<iovec> parts);

  // Cuts off whatever lies behind end().
  absl::Status Trim();

  // Makes what was appended durable. After an error nobody knows what of it is: the file is not to
  // be appended to any more (storage/io/file_io.h, File::Sync).
  absl::Status Sync();
  // After a Sync that failed: what lies behind the first `end` bytes does not count.
  void Abandon(uint64_t end);
  // After a Sync that failed: pages that the kernel took for written are read from the disk again.
  void Forget() const;

 private:
  absl::Status AppendDirect(std::span<iovec> parts);

  File file_;
  WriteMode mode_ = WriteMode::kBuffered;
  uint64_t end_ = 0;
  bool torn_ = false;   // bytes of a failed append may lie behind end_
  HugeMemory staging_;  // direct, once needed
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_SEGMENT_WRITER_H_
