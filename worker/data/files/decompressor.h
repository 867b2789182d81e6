// gzip and zstd streams to plain bytes.
#ifndef STRATA_WORKER_DATA_FILES_DECOMPRESSOR_H_
#define STRATA_WORKER_DATA_FILES_DECOMPRESSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

enum class Compression : uint8_t { kNone, kGzip, kZstd };

// Bytes of a file's start that decide.
inline constexpr size_t kCompressionMagicBytes = 4;

// What a file that begins with these bytes is: RFC 1952 section 2.3.1; RFC 8878 sections 3.1.1 and
// 3.1.2 (skippable frames too). No text of any format begins so.
Compression CompressionOf(absl::string_view start);

// The same of the file `name`. INVALID_ARGUMENT: it is named .gz or .zst and, not being empty, is
// no such file.
absl::StatusOr<Compression> CompressionOfFile(absl::string_view name, absl::string_view start);

// "gzip", "zstd", "no".
absl::string_view CompressionName(Compression compression);

// Takes a whole file in pieces. Members of gzip and frames of zstd may follow one another, as
// `cat a.gz b.gz` makes them; their texts are joined. One thread at a time.
class Decompressor {
 public:
  using Sink = absl::FunctionRef<absl::Status(absl::string_view)>;

  // `name` begins every message. REQUIRES: not kNone.
  static std::unique_ptr<Decompressor> Make(Compression compression, std::string name);
  virtual ~Decompressor() = default;

  // Gives all bytes that `input` completes to `sink`, in pieces of at most 256 KiB. DATA_LOSS: the
  // data are damaged; the message names the byte of the file, from 0 (zstd: to 16 KiB). Errors of
  // the sink are passed on. After an error nothing more may be called.
  virtual absl::Status Push(absl::string_view input, Sink sink) = 0;

  // The file has ended. DATA_LOSS: in the middle of a member or frame.
  virtual absl::Status Finish() = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_DECOMPRESSOR_H_
