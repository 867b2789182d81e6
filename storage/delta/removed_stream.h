// The keys that a job's life-cycle rules removed, streamed to files while it runs
// (spec.output.removed): one file of each shard, deltas (format.h) back to back, one of each
// commit that removed rows. FORMAT.md gives the names, the bytes and which deltas count.
#ifndef STRATA_STORAGE_DELTA_REMOVED_STREAM_H_
#define STRATA_STORAGE_DELTA_REMOVED_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/file_system.h"
#include "storage/delta/file.h"
#include "storage/delta/format.h"
#include "storage/io/file_io.h"

namespace strata::storage {

// Whose file it is. Files are ordered by generation, then by start.
struct RemovedName {
  Generation generation;
  Step from;  // the generation starts after it; asynchronous modes: after the cut of this number
  ShardId shard;

  bool SameRun(const RemovedName& other) const {
    return generation == other.generation && from == other.from;
  }
  bool Before(const RemovedName& other) const {
    return std::tie(generation, from) < std::tie(other.generation, other.from);
  }
};

// removed-00001-000000001000-00003.strata
std::string RemovedFileName(const RemovedName& name);
// Nothing: no file of removals has this name.
std::optional<RemovedName> ParseRemovedName(absl::string_view file_name);
// By generation, start and shard. An absent folder has none; others must be readable.
absl::StatusOr<std::vector<RemovedName>> ListRemoved(const std::string& folder);

// Touched by the shard's executor only. A commit is: MakeRoom and Add for each piece of what it
// removes, EndCommit. Memory: from a commit's first Add to its EndCommit kMostBytes, at most.
// Errors are those of the disk; call again, nothing is written twice.
class RemovedWriter {
 public:
  static constexpr size_t kMostAdd = 2048;  // keys of one Add
  // The block in progress, and its copy while it is written.
  static constexpr size_t kMostBytes = 2 * kDeltaBlockBytes + kMostAdd * 8;

  struct Options {
    std::string folder;  // made if missing
    RemovedName name;
    std::vector<DeltaTable> tables;  // ascending by id: those of which rows are removed
    FileSystem* files = nullptr;     // outlives it; null: the kernel's
  };
  explicit RemovedWriter(Options options);

  // Before anything else one of these. For a generation that begins; FAILED_PRECONDITION: the
  // folder has removals of this shard from this generation on, which another run left.
  absl::Status StartNew();
  // For a shard that was recovered as it was when bytes() were `bytes`: what was written later is
  // cut off, and replay writes it again. A file that is gone starts anew; FAILED_PRECONDITION: it
  // is shorter.
  absl::Status StartAt(uint64_t bytes);

  // Whole deltas, all of them of commits that EndCommit was called for.
  uint64_t bytes() const { return bytes_; }

  // Add may be called once after it. `from` and `to` are the same for all of a commit.
  absl::Status MakeRoom(TableId table, uint64_t from, uint64_t to);
  // REQUIRES: at most kMostAdd; tables ascend over a commit, positions of each strictly.
  void Add(TableId table, std::span<const Position> positions);
  // The commit's removals are in the file, if there were any; not yet durable.
  absl::Status EndCommit();

  // Makes bytes() durable. After a sync that failed every later call fails as well: what was lost
  // is written again by the replay of the next start.
  absl::Status Sync();

  const std::string& path() const { return path_; }

 private:
  absl::Status Open();

  const Options options_;
  const std::string path_;
  std::shared_ptr<const File> file_;
  uint64_t bytes_ = 0;
  uint64_t durable_ = 0;
  bool named_ = false;  // the file's name is durable
  absl::Status sync_failed_;
  std::unique_ptr<DeltaWriter> commit_;  // in progress
  std::optional<TableId> table_;         // of the block in progress
};

// One commit's removals of one shard.
struct RemovedKeys {
  RemovedName run;
  uint64_t step = 0;  // bsp: of the commit; asynchronous modes: the cut that first holds it
  TableId table;
  std::span<const uint64_t> keys;  // ascending by position
};
using RemovedVisitor = std::function<absl::Status(const RemovedKeys&)>;

// Calls `visit` for every removal that counts, file after file as ListRemoved gives them, each in
// the order of its commits. Where a later generation starts, what earlier ones removed after its
// start does not count. A delta that its file's end cuts off belongs to a commit in progress, or to
// one that a crash undid, and does not count. DATA_LOSS with file and offset: damage elsewhere.
absl::Status ReadRemoved(const std::string& folder, const RemovedVisitor& visit);

// What a file of removals holds.
struct RemovedSummary {
  std::vector<DeltaTable> tables;  // of which rows are removed; none where there is no delta
  std::vector<uint64_t> keys;      // that count, by table
  uint64_t commits = 0;            // deltas that count,
  uint64_t first_step = 0;         // the first's step, and the last's
  uint64_t last_step = 0;
  uint64_t undone_commits = 0;  // deltas of steps after `last`
  uint64_t whole_bytes = 0;     // of all these
  uint64_t file_bytes = 0;  // what is behind them is of a commit in progress, or a crash undid it
};
// One file, whatever it is called; deltas of steps after `last` do not count. Each delta is checked
// whole before `visit` is called for it.
absl::StatusOr<RemovedSummary> ReadRemovedFile(const std::string& path, const RemovedName& name,
                                               uint64_t last, const RemovedVisitor& visit);
// The last step that counts of a file, in a folder of `names`.
uint64_t LastThatCounts(const RemovedName& name, std::span<const RemovedName> names);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_DELTA_REMOVED_STREAM_H_
