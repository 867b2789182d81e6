// What the background thread of a row file does: makes new versions, and makes them durable.
#ifndef STRATA_STORAGE_ROW_FILE_WRITER_H_
#define STRATA_STORAGE_ROW_FILE_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/partition.h"
#include "proto/runtime/files/file_system.h"
#include "storage/row_file/memtable.h"
#include "storage/row_file/version.h"
#include "storage/row_file/volume.h"

namespace strata::storage::row_file {

using VersionPointer = std::shared_ptr<const Version>;

struct WriterOptions {
  std::string directory;
  Partitioning partitioning;
  uint32_t base_filter_bits = 8;
  uint32_t delta_filter_bits = 14;
  size_t most_ranges = 1;
  FileSystem* files = &FileSystem::Kernel();  // outlives the writer
};

// One thread at a time. A call that fails has changed nothing and may be repeated; but once a sync
// of the rows has failed, every call fails with that: nobody knows what of them was lost, and
// another sync would not say it.
class VersionWriter {
 public:
  VersionWriter(WriterOptions options, Volume* volume)
      : options_(std::move(options)), volume_(volume) {}

  // The version that the manifest names; an empty one if there is none. DATA_LOSS, or
  // FAILED_PRECONDITION if it is of other partitions.
  absl::StatusOr<VersionPointer> Load();

  absl::StatusOr<VersionPointer> Flush(const Version& version, const Memtable& memtable);
  absl::StatusOr<VersionPointer> Run(const Version& version, const MergeJob& job);
  absl::StatusOr<VersionPointer> Drop(const Version& version, PartitionId first, PartitionId last);

  // Makes the version what Load finds, and frees what no version needs.
  absl::Status Commit(const Version& version);

  uint64_t manifest_bytes() const { return manifest_bytes_.load(std::memory_order_relaxed); }

 private:
  using Extents = std::vector<std::shared_ptr<const Extent>>;
  absl::StatusOr<std::shared_ptr<const Extent>> LoadExtent(const ExtentPlace& place) const;
  // A new base of everything in a range, less partitions first .. last if first <= last, in
  // `pieces`; puts the ranges that come out of it into `out`.
  absl::Status MakeBase(const Range& range, RowKey last_key, size_t pieces,
                        const PartitionRange* without, std::vector<Range>& out);
  absl::Status WriteManifest(const std::vector<uint8_t>& bytes);

  const WriterOptions options_;
  absl::Status sync_failed_;
  Volume* const volume_;
  uint64_t next_number_ = 1;
  std::atomic<uint64_t> manifest_bytes_{0};  // written
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_WRITER_H_
