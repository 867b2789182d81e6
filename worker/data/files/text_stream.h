// The text of a file or of standard input, read once from its beginning.
// Tested by tests/worker/data/reading/line_stream_test.cc
#ifndef STRATA_WORKER_DATA_FILES_TEXT_STREAM_H_
#define STRATA_WORKER_DATA_FILES_TEXT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/decompressor.h"
#include "worker/data/files/text_files.h"

namespace strata {

// gzip and zstd are decompressed on the way: nothing is written to a disk, and what comes through a
// pipe is given as soon as it is there. Memory: one read (256 KiB), and the text of 1 KiB of what
// is compressed. One thread at a time.
class TextStream {
 public:
  // `path` is a file, or "-": what comes from the descriptor `standard_input`, which stays open.
  // Errors: those of DataFile::Open.
  static absl::StatusOr<std::unique_ptr<TextStream>> Open(const std::string& path,
                                                          int standard_input);
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  // As messages call it.
  const std::string& name() const { return name_; }
  bool ended() const { return ended_; }
  // Whether Read has something at once, or the end.
  bool ready() const;

  // Waits for input, and appends what text it gives, maybe none. REQUIRES: !ended(). DATA_LOSS:
  // compressed data are damaged or cut off. INVALID_ARGUMENT: named .gz or .zst and is not.
  // INTERNAL, or as DataFile::Read: it cannot be read. CANCELLED: `cancelled`, asked while nothing
  // comes and between pieces, said so; it may be empty.
  absl::Status Read(const Cancelled& cancelled, std::string* out);

 private:
  TextStream(std::string name, std::unique_ptr<DataFile> file, int fd)
      : name_(std::move(name)), file_(std::move(file)), fd_(fd) {}

  // Replaces what is left of `raw_`, nothing, by the next bytes; none: the input has ended.
  absl::Status Fill(const Cancelled& cancelled);
  absl::Status FillFromFile();
  absl::Status FillFromDescriptor(const Cancelled& cancelled);
  // Looks at the first bytes, once there are enough of them.
  absl::Status Begin(bool last);

  const std::string name_;
  const std::unique_ptr<DataFile> file_;  // null: fd_
  const int fd_;
  uint64_t file_at_ = 0;
  std::string raw_;
  size_t raw_at_ = 0;
  std::string start_;  // the first bytes, while they are too few to tell what they are
  bool begun_ = false;
  std::unique_ptr<Decompressor> decompressor_;  // null: plain text
  bool ended_ = false;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_TEXT_STREAM_H_
