// The one big file of a row-file tier: chunks of 16 KiB that are given out and come back.
#ifndef STRATA_STORAGE_ROW_FILE_VOLUME_H_
#define STRATA_STORAGE_ROW_FILE_VOLUME_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/file_io.h"

namespace strata::storage::row_file {

inline constexpr uint64_t kPageBytes = 4096;  // alignment of direct reads and writes
inline constexpr uint64_t kChunkBytes = 16384;

// Consecutive chunks.
struct ChunkRun {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Page-aligned memory.
struct FreeMemory {
  void operator()(uint8_t* p) const { std::free(p); }
};
using PageMemory = std::unique_ptr<uint8_t[], FreeMemory>;
PageMemory AllocatePages(size_t bytes);

// Thread-safe. Memory: 1 bit a chunk.
class Volume {
 public:
  // Opens or makes the file at `path`; with direct IO where the file system has it.
  // `files` outlives it.
  static absl::StatusOr<std::unique_ptr<Volume>> Open(const std::string& path,
                                                      FileSystem& files = FileSystem::Kernel());

  // Room for this many chunks, lowest first; the file grows if need be. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::vector<ChunkRun>> Allocate(uint32_t chunks);
  // Marks chunks as in use. DATA_LOSS if one of them is already.
  absl::Status Claim(const std::vector<ChunkRun>& runs);
  // Chunks that the last manifest does not name.
  void Free(const std::vector<ChunkRun>& runs);
  // Chunks that the last manifest may name: free after a manifest without them.
  void Retire(std::vector<ChunkRun> runs);
  std::vector<ChunkRun> TakeRetired();

  // Of page-aligned places and memory.
  absl::Status Read(uint64_t offset, std::span<uint8_t> bytes) const;
  absl::Status Write(uint64_t offset, std::span<const uint8_t> bytes);
  absl::Status Sync() const;

  int fd() const { return file_.fd(); }
  const std::string& path() const { return file_.path(); }
  uint64_t bytes_written() const { return written_.load(std::memory_order_relaxed); }
  uint64_t file_bytes() const;

 private:
  explicit Volume(File file) : file_(std::move(file)) {}
  absl::Status Grow(uint32_t chunks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const File file_;
  std::atomic<uint64_t> written_{0};
  mutable Mutex mu_;
  std::vector<bool> used_ ABSL_GUARDED_BY(mu_);  // one per chunk of the file
  uint32_t free_ ABSL_GUARDED_BY(mu_) = 0;
  size_t lowest_ ABSL_GUARDED_BY(mu_) = 0;  // no free chunk is below
  std::vector<ChunkRun> retired_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_VOLUME_H_
