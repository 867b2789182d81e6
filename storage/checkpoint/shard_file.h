// One file format for base images and for the files of a checkpoint: the rows of a run of
// partitions and the small state that belongs to them. FORMAT.md gives every byte.
#ifndef STRATA_STORAGE_CHECKPOINT_SHARD_FILE_H_
#define STRATA_STORAGE_CHECKPOINT_SHARD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/file_system.h"
#include "storage/row/hash.h"

namespace strata::storage {

enum class ShardFileKind : uint32_t {
  kBaseImage = 1,
  kCheckpoint = 2,
  kIncrement = 3,  // rows that changed since another file of the same partitions, and those gone
};

// What fixes the bytes of a table's rows.
struct TableShape {
  TableId id;
  TableKind kind = TableKind::kHashed;
  uint32_t dim = 0;           // weights, floats
  uint32_t state_floats = 0;  // optimizer state, floats

  size_t row_bytes() const { return (size_t{dim} + state_floats) * 4 + 8; }
  Key KeyAt(Position position) const {
    return kind == TableKind::kDense ? Key(position.value) : KeyOf(position, TableSalt(id));
  }
  friend bool operator==(const TableShape&, const TableShape&) = default;
};

struct ShardFileHeader {
  ShardFileKind kind = ShardFileKind::kBaseImage;
  JobId job;
  Generation generation;
  JobIdentity identity;   // which job that is, whatever its number
  uint64_t cut = 0;       // number of the cut; base image: 0
  uint64_t base_cut = 0;  // increment: that of the file that it follows
  MapEpoch map_epoch;     // in which it was taken
  ShardId shard;          // as numbered when the file was written
  Partitioning partitioning{Partitioning::kDefaultPartitions};
  PartitionRange partitions;       // that the file holds
  Step clock;                      // bsp: the last committed step; async: the number of the cut
  uint64_t log_segment = 0;        // base image: the first log segment to replay after it
  Step base;                       // increment: the clock of the file that it follows
  std::vector<TableShape> tables;  // ascending by id

  FileWriter writer() const { return {identity, generation, cut}; }
};

// DATA_LOSS unless the file is the one that its manifest means: the text names both writers.
absl::Status CheckWriter(const ShardFileHeader& header, const std::string& path,
                         const FileWriter& expected);

// Small opaque state, numbered by its owner (filters, dedup records, clocks). A section belongs to
// a run of partitions, so that a reader of some partitions gets what belongs to them.
struct Section {
  uint32_t type = 0;
  PartitionRange partitions;
  std::span<const uint8_t> bytes;
};

// Weights that rows had before the step of the file's clock ("was absent" included, as the initial
// weights): positions (n) strictly ascending, weights (n, dim).
struct PreImages {
  TableId table;
  std::span<const Position> positions;
  std::span<const float> weights;
};

// What a finished file holds; the manifest repeats it.
struct ShardFileSummary {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the whole file
  uint64_t rows = 0;    // of all tables
  HashSum hash;         // sum of HashRow over all rows of all tables
};

// Writes a file under a temporary name (NameWhileWritten of the header's job) and gives it its name
// when it is complete and fsynced; around the page cache where the file system can. One thread.
// After any error, or when it is destroyed before Finish, the temporary file is removed, and
// further calls return the error. Memory: FileStream::kStagingBytes; kBlockBytes + one row per
// table where AddRow is used.
class ShardFileWriter {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 18;  // of rows in a block, about

  virtual ~ShardFileWriter() = default;

  // An existing file of that name is replaced at Finish, in one step. INVALID_ARGUMENT for a header
  // that contradicts itself; NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED from the file system,
  // with the path.
  // `files` outlives the writer.
  static absl::StatusOr<std::unique_ptr<ShardFileWriter>> Create(
      const std::string& path, const ShardFileHeader& header,
      FileSystem& files = FileSystem::Kernel());

  // `row` has the table's row_bytes. Positions of one table strictly ascend; tables may alternate.
  // INVALID_ARGUMENT otherwise, or for a position outside the partitions or an unknown table.
  virtual absl::Status AddRow(TableId table, Position position, std::span<const uint8_t> row) = 0;
  // The same for many rows, which become a block as they are: positions (n), rows (n, row_bytes);
  // none are fine. REQUIRES: no AddRow of the same table.
  virtual absl::Status AddRows(TableId table, std::span<const Position> positions,
                               std::span<const uint8_t> rows) = 0;
  // Increment: rows of the base that are gone. Strictly ascending over all calls of a table.
  virtual absl::Status AddErased(TableId table, std::span<const Position> positions) = 0;
  virtual absl::Status AddSection(const Section& section) = 0;
  virtual absl::Status AddPreImages(const PreImages& images) = 0;

  // RESOURCE_EXHAUSTED: disk full. The file that was there stays then, except where the folder's
  // fsync failed: it is the old one or the new one, each whole, and which of them a power failure
  // leaves is not known.
  virtual absl::StatusOr<ShardFileSummary> Finish() = 0;
};

// Reads a file and checks every byte it uses. Const calls from any thread. Errors: DATA_LOSS names
// file and offset. Memory per call: one block (kBlockBytes and a row, or a section).
class ShardFileReader {
 public:
  virtual ~ShardFileReader() = default;

  // Checks header, footer and size. UNIMPLEMENTED: of an older version. NOT_FOUND,
  // PERMISSION_DENIED with the path.
  static absl::StatusOr<std::unique_ptr<ShardFileReader>> Open(const std::string& path);

  virtual const ShardFileHeader& header() const = 0;
  virtual uint64_t rows(TableId table) const = 0;
  // What the footer says; crc32c is 0 (Verify computes it).
  virtual const ShardFileSummary& summary() const = 0;

  // Calls `visit` for blocks of a table's rows in `partitions`, ascending by position: positions
  // (n), rows (n * row_bytes) at `rows`, 8-byte aligned, valid during the call. Reads those blocks
  // only. Stops at the first error of `visit`.
  using RowVisitor =
      std::function<absl::Status(std::span<const Position> positions, const uint8_t* rows)>;
  virtual absl::Status ReadRows(TableId table, PartitionRange partitions,
                                const RowVisitor& visit) const = 0;

  // Sections that meet `partitions`, in the order of writing.
  using SectionVisitor = std::function<absl::Status(const Section&)>;
  virtual absl::Status ReadSections(PartitionRange partitions,
                                    const SectionVisitor& visit) const = 0;
  // Those of one type. Reads no others, which may be large (filters).
  virtual absl::Status ReadSectionsOf(uint32_t type, PartitionRange partitions,
                                      const SectionVisitor& visit) const = 0;

  // Pre-images of one table in `partitions`, in blocks, ascending by position.
  using PreImageVisitor = std::function<absl::Status(const PreImages&)>;
  virtual absl::Status ReadPreImages(TableId table, PartitionRange partitions,
                                     const PreImageVisitor& visit) const = 0;

  // Increment: rows of the base that are gone, in blocks, ascending.
  using ErasedVisitor = std::function<absl::Status(std::span<const Position>)>;
  virtual absl::Status ReadErased(TableId table, PartitionRange partitions,
                                  const ErasedVisitor& visit) const = 0;

  // Reads the whole file: every checksum, the order of rows, counts and hash sums. The result's
  // crc32c is that of the whole file.
  virtual absl::StatusOr<ShardFileSummary> Verify() const = 0;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_CHECKPOINT_SHARD_FILE_H_
