// Input files as text: compressed ones are decompressed.
#ifndef STRATA_WORKER_DATA_FILES_TEXT_FILES_H_
#define STRATA_WORKER_DATA_FILES_TEXT_FILES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/decompressor.h"

namespace strata {

// Whether nobody wants any more what is being read. Thread-safe, and quick.
using Cancelled = std::function<bool()>;
// CANCELLED: it says so. Empty: OK.
absl::Status StillWanted(const Cancelled& cancelled, const std::string& path);

// How messages call the file of a job: "-" is "standard input".
std::string NameForMessages(const std::string& path);

// Shuffled reading jumps between lines. A gzip or zstd file has no places to jump to (zstd's usual
// single frame none at all), so a compressed file becomes a plain copy, once, in a file without a
// name: it goes away with the last DataFile that shows it, or with the process, however that ends.
// All who open the same file meanwhile share one copy, and from then on every byte is read as from
// a plain file. Memory: one piece of a stream (under 9 MiB). Disk: the text of the compressed files
// in use. (Rejected: access points with their 32 KiB windows, which read megabytes for each task of
// a shuffled epoch and do not exist within a zstd frame.)
//
// Thread-safe; the copy of one file is made by one thread while others wait for it.
class TextFiles {
 public:
  struct Options {
    // Where copies lie; empty: $TMPDIR, else /tmp.
    std::string directory;
    // The file that "-" stands for; messages call it "standard input". Empty: there is none.
    std::string standard_input;
  };
  TextFiles() = default;
  explicit TextFiles(Options options) : options_(std::move(options)) {}

  // The file's text. Its path() is `path`, whatever lies behind. Errors: those of DataFile::Open;
  // DATA_LOSS: damaged or cut off, with the byte of the file; RESOURCE_EXHAUSTED: no room for the
  // copy, with its place; INVALID_ARGUMENT: named .gz or .zst and is not, or "-" without standard
  // input. CANCELLED: `cancelled`, asked between pieces of a copy, said so; it may be empty.
  absl::StatusOr<std::shared_ptr<const DataFile>> Open(const std::string& path,
                                                       const Cancelled& cancelled = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The file itself, for fingerprints: of "-" the file that it stands for.
  absl::StatusOr<std::unique_ptr<DataFile>> OpenRaw(const std::string& path) const;

 private:
  struct Copy {
    absl::Mutex mu;
    std::weak_ptr<const DataFile> file ABSL_GUARDED_BY(mu);
  };

  absl::StatusOr<std::shared_ptr<const DataFile>> MakeCopy(const DataFile& raw,
                                                           Compression compression,
                                                           const Cancelled& cancelled) const;
  std::string Directory() const;

  const Options options_{};
  absl::Mutex mu_;
  std::map<DataFileIdentity, std::shared_ptr<Copy>> copies_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_TEXT_FILES_H_
