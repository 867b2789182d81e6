// Goes through one segment of the update log in large reads, from any of its records on.
#ifndef STRATA_STORAGE_LOG_SEGMENT_READER_H_
#define STRATA_STORAGE_LOG_SEGMENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/file_io.h"
#include "storage/log/format.h"
#include "storage/log/record.h"
#include "storage/log/scan.h"

namespace strata::storage {

// One thread at a time. Holds one window of the file in memory, which grows to the longest record
// that is wanted; a record that is not wanted and leaves the window is not read.
class SegmentReader {
 public:
  static constexpr size_t kWindowBytes = size_t{4} << 20;
  // False: enough was taken. The record counts as passed either way.
  using Taker = std::function<absl::StatusOr<bool>(const LogRecordView&)>;

  // The file's first `size` bytes count. DATA_LOSS: it is shorter, or not that segment.
  static absl::StatusOr<SegmentReader> Open(const std::string& path, uint64_t segment,
                                            uint64_t size, FileSystem& files);

  // From `offset` (0: the first record) on, which it moves behind each record that is passed.
  // False: `take` had enough. DATA_LOSS: a header, or the payload of a wanted record, does not
  // check.
  absl::StatusOr<bool> Read(uint64_t& offset, const log::RecordFilter& wanted, const Taker& take);

 private:
  SegmentReader(File file, std::string path, uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}
  // The segment's bytes from `offset` on, at least `bytes`.
  absl::StatusOr<std::span<const uint8_t>> Window(uint64_t offset, uint64_t bytes);

  File file_;
  std::string path_;
  uint64_t size_;
  log::SegmentHeader header_;
  std::vector<uint64_t> memory_;  // words: records lie at multiples of 8
  uint64_t begin_ = 0;            // of the segment, where the window begins
  uint64_t length_ = 0;           // of the window
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_SEGMENT_READER_H_
