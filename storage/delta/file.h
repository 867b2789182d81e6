// What changed in a model between two moments, as a file that a copy of it (a server for inference)
// is brought up to date with: rows to put, rows to remove. FORMAT.md gives every byte.
//
// A delta names the moment that it starts from, by step and by model hash, and the one that it
// leads to, so that whoever applies deltas can refuse one that does not follow (CheckFollows). It
// is read from the front to the back, one block in memory; what was read before damage is met must
// not be used, so read a delta whole (VerifyDelta) before applying it in place.
#ifndef STRATA_STORAGE_DELTA_FILE_H_
#define STRATA_STORAGE_DELTA_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/file_system.h"
#include "storage/delta/format.h"
#include "storage/io/file_io.h"

namespace strata::storage {

struct DeltaSummary {
  uint64_t upserts = 0;
  uint64_t deletes = 0;
  uint64_t bytes = 0;
  friend bool operator==(const DeltaSummary&, const DeltaSummary&) = default;
};

// One thread. Writes to the path itself; the file is a delta once Finish has returned. Memory: a
// block of upserts, one of deletes and a copy of the one that is written. A write that fails may be
// called again, and goes on where it stopped; a failed sync is final.
class DeltaWriter {
 public:
  // An existing file is overwritten. RESOURCE_EXHAUSTED (disk full), PERMISSION_DENIED, NOT_FOUND,
  // with the path. `files` outlives the writer.
  static absl::StatusOr<std::unique_ptr<DeltaWriter>> Create(
      const std::string& path, const DeltaHeader& header, FileSystem& files = FileSystem::Kernel());
  // The delta begins at `offset` of `file`; its own offsets count from there.
  static absl::StatusOr<std::unique_ptr<DeltaWriter>> At(std::shared_ptr<const File> file,
                                                         uint64_t offset,
                                                         const DeltaHeader& header);

  // `row` has header.row_bytes of the table. Positions of a table's upserts strictly ascend, and so
  // do those of its deletes; no row is both. INVALID_ARGUMENT otherwise.
  absl::Status Upsert(TableId table, Position position, std::span<const uint8_t> row);
  absl::Status Delete(TableId table, Position position);
  // Upserts and deletes each write a block when it has kDeltaBlockBytes, and both do when another
  // table begins; this writes them now.
  absl::Status Flush();
  size_t buffered_bytes() const { return upserts_.bytes() + deletes_.bytes(); }
  // Writes the end; Finish syncs it as well. Where its sync failed, which bytes the device has is
  // not known: another Finish gives the same error, and the delta must be written anew.
  absl::StatusOr<DeltaSummary> End();
  absl::StatusOr<DeltaSummary> Finish();

 private:
  struct Last {
    std::optional<Position> upsert, erased;
  };
  DeltaWriter(DeltaHeader header, std::shared_ptr<const File> file, uint64_t offset);
  // A block in progress. Upserts and deletes have one each: where they alternate, blocks of both
  // would be a row long, and their heads a sixth of the file.
  struct Pending {
    std::vector<uint64_t> keys;
    std::vector<uint8_t> rows;
    size_t bytes() const { return rows.size() + keys.size() * 8; }
  };
  absl::Status Begin(const DeltaTable& table, DeltaBlockType type, Pending& block);
  absl::Status WriteBlock(DeltaBlockType type, Pending& block);
  absl::Status Write(std::span<const uint8_t> bytes);

  const DeltaHeader header_;
  const std::shared_ptr<const File> file_;
  const uint64_t offset_;              // of the delta in it
  std::vector<Last> last_;             // by index into header_.tables
  const DeltaTable* table_ = nullptr;  // of the blocks in progress
  Pending upserts_, deletes_;
  DeltaSummary written_;
  absl::Status sync_failed_;
};

// A run of upserts or deletes of one table, ascending by position.
struct DeltaBlock {
  DeltaBlockType type = DeltaBlockType::kUpserts;  // or kDeletes
  TableId table;
  std::span<const uint64_t> keys;  // (n): feature ids; of a dense table positions
  const uint8_t* rows = nullptr;   // upserts: (n, row_bytes), 8-byte aligned
};

// What may follow a delta's end in its source.
enum class DeltaTail : uint8_t { kNothing, kAnything };

// One thread. Memory: one block (kDeltaMostPayload). Damage is DATA_LOSS with name and offset.
class DeltaReader {
 public:
  // Fills all of `out` from `offset` on, or says why not; sizes beyond the end never are asked for.
  using Source = std::function<absl::Status(uint64_t offset, std::span<uint8_t> out)>;

  // NOT_FOUND, PERMISSION_DENIED with the path; DATA_LOSS: no delta, or a damaged header.
  static absl::StatusOr<std::unique_ptr<DeltaReader>> Open(const std::string& path);
  // `bytes` of `source`, called `name` in messages.
  static absl::StatusOr<std::unique_ptr<DeltaReader>> From(Source source, uint64_t bytes,
                                                           std::string name,
                                                           DeltaTail tail = DeltaTail::kNothing);

  const DeltaHeader& header() const { return header_; }
  // The next block, valid until the next call; false: the delta ended as it should, and summary()
  // says what was in it.
  absl::StatusOr<bool> Next(DeltaBlock& block);
  const DeltaSummary& summary() const { return read_; }
  // The last error says that the source ended before the delta did.
  bool cut_off() const { return cut_off_; }

 private:
  DeltaReader(Source source, uint64_t bytes, std::string name, DeltaHeader header, uint64_t at,
              DeltaTail tail);
  absl::Status Damaged(uint64_t offset, const std::string& what) const;
  absl::Status CheckBlock(const DeltaBlockHead& head, uint64_t at);
  absl::Status CheckSize(const DeltaBlockHead& head, uint64_t at) const;
  absl::Status CheckOrder(const DeltaBlockHead& head, uint64_t at);
  absl::StatusOr<bool> End(const DeltaBlockHead& head, uint64_t at);

  const Source source_;
  const uint64_t bytes_;
  const std::string name_;
  const DeltaHeader header_;
  const DeltaTail tail_;
  uint64_t at_;
  bool ended_ = false;
  bool cut_off_ = false;
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> rows_;                 // words, so that rows are aligned
  std::vector<std::optional<Position>> last_;  // by table, upserts then deletes
  DeltaSummary read_;
};

// Reads the whole file.
absl::StatusOr<DeltaSummary> VerifyDelta(const std::string& path);

// Whether a delta may be applied to a copy that is at `at`; no value: an empty copy.
// FAILED_PRECONDITION names both moments.
absl::Status CheckFollows(const DeltaHeader& delta, const std::optional<DeltaPoint>& at);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DELTA_FILE_H_
