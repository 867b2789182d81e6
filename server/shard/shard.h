// A run of partitions of a job on this server: its tables, clock, gate, log records, images and
// checkpoint files. Decides with the pure machines (server/protocol/step_gate.h,
// server/protocol/window_ledger.h, server/protocol/cut_barrier.h) and does what they say; knows no
// requests, threads or waiting (runner.h does).
#ifndef STRATA_SERVER_SHARD_SHARD_H_
#define STRATA_SERVER_SHARD_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/protocol/cut_barrier.h"
#include "server/protocol/life_cycle_counters.h"
#include "server/protocol/replica_chain.h"
#include "server/protocol/step_gate.h"
#include "server/protocol/window_ledger.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/update_record.h"
#include "server/snapshot/shard_snapshot.h"
#include "server/table/change_list.h"
#include "server/table/refused_rows.h"
#include "server/table/shard_table.h"
#include "server/table/sums.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/delta/removed_stream.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"
#include "storage/row/hash.h"
#include "storage/row/table.h"

namespace strata::server {

struct ShardOptions {
  JobId job;
  JobIdentity identity;  // which job that is
  Generation generation;
  MapEpoch map_epoch;
  ShardId id;
  Partitioning partitioning{Partitioning::kDefaultPartitions};
  PartitionRange range;
  std::vector<TableSpec> tables;
  uint64_t seed = 0;
  uint32_t lanes = 1;
  bool synchronous = true;            // bsp; false: asynchronous
  storage::UpdateLog* log = nullptr;  // outlives the shard; null: level `memory`
  // Is told of all rows that life-cycle rules remove; null: nobody wants to know.
  std::unique_ptr<storage::RemovedWriter> removed;
  Step start;  // of the generation (async: the cut that it starts from)
};

// Everything a contribution or window says about one shard.
struct ShardUpdate {
  uint64_t examples = 0;
  uint64_t fingerprint = 0;       // of what was sent; compared when it is sent again
  std::vector<TableSums> tables;  // by table; all of them, empty ones too
};

// A record that was written into the log. All of it is there during the call only.
struct AppendedRecord {
  const storage::LogHeader& header;
  storage::LogPosition at;
  std::span<const std::span<const uint8_t>> parts;  // of the payload,
  std::optional<uint32_t> crc32c;                   // and its sum, if somebody made it
  LogEnd end;
};

// A record of the copy before this one.
struct ReceivedRecord {
  storage::LogRecordView record;
  std::shared_ptr<const void> owner = {};  // of what the payload lies in; null: it is there for now
  // What the payload has to sum up to, which the log looks at; nothing: that was checked.
  std::optional<uint32_t> crc32c = std::nullopt;
};

// All calls from one executor at a time.
//
// Errors of the disk (log, tier) leave the shard as it was, or with an update that is durable and
// partly applied: then nothing else is served until a later call has finished it.
class Shard {
 public:
  // `rows[t]` holds the rows of table t, empty. Starts at clock 0; see Load, Restore.
  Shard(ShardOptions options, std::vector<std::unique_ptr<storage::RowTable>> rows);

  const ShardOptions& options() const { return options_; }
  Position first_position() const { return options_.partitioning.First(options_.range.first); }
  Position last_position() const { return options_.partitioning.Last(options_.range.last); }
  // Bsp: the last step in the log. Async: the number of applied windows.
  Step clock() const { return gate_.clock(); }
  // The same of what every copy of the shard has; without copies the clock.
  Step committed() const { return gate_.committed(); }
  // The log has one update more than the clock says, and some of the rows may have it: whoever
  // reads them has it applied to all first.
  bool behind() const { return pending_.has_value(); }
  LogEnd log_end() const { return {clock().value, barrier_.taken()}; }
  // As ShardTable's, where that of all hashed tables is one; else empty.
  std::string values_device() const;
  uint64_t refused_rows() const;
  // The first of them: of table 0, then of the next one.
  std::vector<RefusedRowCount> first_refused() const;
  uint64_t clipped_rows() const;
  LifeCycleCounters life_cycle() const;     // summed over tables
  storage::TableCounters counters() const;  // summed over tables
  size_t table_count() const { return tables_.size(); }
  uint64_t RowsOf(size_t table) const { return tables_[table].counters().rows; }

  // --- bsp (REQUIRES: synchronous)
  GateAnswer Contribute(Step step, LaneNode node, ShardUpdate update);
  // Commits the next step if it is complete: append to the log, apply, advance the clock. True: the
  // clock moved. On error call again later; nothing is lost. Whatever the mode, it first applies
  // what is behind().
  absl::StatusOr<bool> TryCommit();
  bool WantsCommit() const { return behind() || gate_.Complete(); }
  PullVerdict CheckPull(Step step) const { return gate_.Pull(step); }
  Step ResumeStep() const { return gate_.ResumeStep(); }

  // --- async (REQUIRES: not synchronous)
  enum class WindowResult : uint8_t { kApplied, kRepeated, kTooFar };
  // A window of a closed task is a repetition; one more than WindowLedger::kMaxAhead beyond the
  // first that is missing is too far. kApplied: durable (at `logged`). Errors are those of the
  // disk; nothing is lost.
  absl::StatusOr<WindowResult> ApplyWindow(TaskId task, uint64_t window, LaneId lane,
                                           ShardUpdate update);
  void CloseBelow(TaskId task) { ledger_.CloseBelow(task); }
  CutBarrier& barrier() { return barrier_; }
  // UNAVAILABLE: there is no such cut, as far as the shard was told (CutBarrier::MayExist). `what`
  // names it.
  absl::Status CheckCut(absl::string_view what, CutNumber cut) const;
  // Notes durably that the barrier's pending cut is taken. On error it has failed; over it is
  // either way. REQUIRES: barrier().Ready().
  absl::Status CutTaken();

  // --- copies (server/protocol/replica_chain.h)
  // Is told of every record that was written into the log, before it is applied.
  using Appended = std::function<void(const AppendedRecord&)>;
  void SetAppended(Appended appended) { appended_ = std::move(appended); }
  // As StepGate's.
  void WaitForCopies(Step committed) { gate_.WaitForCopies(committed); }
  void CommitThrough(Step step) { gate_.CommitThrough(step); }
  // A record of the copy before this one: into the log, then applied from where it lies. One that
  // is there is skipped. FAILED_PRECONDITION: what comes before it is missing, or it is of another
  // shard or generation; ALREADY_EXISTS: its window was applied before, under another number: the
  // logs differ, and it will never fit; DATA_LOSS: its payload is damaged. Nothing was changed
  // then. Other errors as those of commits: the shard may be behind() then. `appended` is called
  // between the two.
  absl::Status Take(const ReceivedRecord& received,
                    const std::function<void()>& appended = nullptr);

  // --- both
  // out: (n) rows, by default of floats. REQUIRES: positions strictly ascend, within the shard.
  absl::Status Read(TableId table, std::span<const Position> positions, void* out,
                    const ReadAs& as = {});
  // The same as of the step before the clock's. REQUIRES: CheckPull said kServePreimage.
  absl::Status ReadPreimages(TableId table, std::span<const Position> positions, void* out,
                             const ReadAs& as = {});
  // See ShardTable.
  absl::Status Warm(TableId table, std::span<const Position> positions, KeptRows& kept);
  void Unpin(TableId table, std::span<const Position> positions, KeptRows& kept);
  // A slice of background work (storage/row/table.h): at most `rows` rows of each table. Returns
  // the bytes of rows written, 0 when there is nothing to do.
  absl::StatusOr<uint64_t> Tidy(size_t rows);

  // The shard as it is now, for a base image; `log_segment`: the log holds every record after the
  // clock from there on.
  absl::StatusOr<std::unique_ptr<ShardSnapshot>> SnapshotImage(uint64_t log_segment);
  // For a checkpoint file of `cut` (bsp: the step; async: the cut's number).
  struct CheckpointOptions {
    Step cut;
    // The cut before, which an increment may follow. One is taken where the changes since exactly
    // that cut are known; else all rows.
    std::optional<Step> base;
    bool follow = false;  // note what changes from now on: the next may be an increment
    // Numbers of the two, as the scheduler ordered them.
    uint64_t number = 0;
    uint64_t base_number = 0;
  };
  absl::StatusOr<std::unique_ptr<ShardSnapshot>> SnapshotCheckpoint(
      const CheckpointOptions& options);
  // For rows and hash alone.
  absl::StatusOr<std::unique_ptr<ShardSnapshot>> SnapshotSums();
  // At once, while the caller waits: recovery.
  absl::Status WriteImage(const std::string& path, uint64_t log_segment);
  absl::StatusOr<storage::ShardFileSummary> WriteCheckpoint(const std::string& path, Step cut);
  // Rows and hash as a checkpoint taken now would have them.
  absl::StatusOr<storage::ShardFileSummary> Summarize();

  // --- before the first of the above
  // Takes over a base image of this very shard. DATA_LOSS, FAILED_PRECONDITION (another one's: the
  // text names both).
  absl::Status LoadImage(const storage::ShardFileReader& image);
  // Takes over what a checkpoint's file holds of this shard's partitions; call for every file, an
  // increment after what it follows. The clock becomes `start_step` (bsp). `another`: the file is
  // of another job's life (spec.model.initFrom): the rows alone, as the plan says (another_rows.h):
  // its windows and cuts are not those of this job. `row_clock`: of such a file, as RowTaker's.
  absl::Status Restore(const storage::ShardFileReader& segment, Step start_step,
                       const RestorePlan* another = nullptr, uint64_t row_clock = 0);
  // Rows that were taken over have optimizer state of so many commits of earlier jobs.
  void CountFrom(const EarlierCommits& commits);
  // Before the first Replay of a shard without a base image, and for a new one (storage::
  // RemovedWriter).
  absl::Status StartRemoved(bool is_new);
  // Applies a log record after the image's, in log order; skips other shards' and older ones.
  absl::Status Replay(const storage::LogRecordView& record);

 private:
  // An update that is durable, being applied.
  struct Pending {
    UpdateStep step;
    std::vector<TableSums> tables;
    size_t table = 0;         // progress: tables before are applied,
    size_t done = 0;          // and so many rows of this one
    size_t swept_tables = 0;  // then: tables before have lost what their life-cycle rules take,
    PartitionId next_swept;   // and of this one the partitions before
  };
  absl::Status Append(const storage::LogHeader& header, std::span<const TableSums> tables);
  storage::LogHeader RecordHeader(RecordKind kind) const;
  void Begin(UpdateStep step, std::vector<TableSums> tables);
  void BeginAgain(const storage::LogHeader& header, std::vector<TableSums> tables);
  absl::Status CheckTaken(const storage::LogHeader& header, bool cut) const;
  // Applies what is pending and moves the clock.
  absl::Status Finish();
  absl::Status SweepTables();
  absl::StatusOr<std::vector<TableSums>> RootSums();
  storage::ShardFileHeader FileHeader(storage::ShardFileKind kind, Step clock) const;
  void FreezeState(FrozenState& out) const;
  void FreezeFilters(FrozenState& out) const;
  void FreezeEarlierCommits(FrozenState& out) const;
  absl::Status CountFromFile(const storage::ShardFileReader& file);
  absl::Status FreezePreimages(FrozenState& out);
  std::unique_ptr<ShardSnapshot> Snapshot(FrozenState state,
                                          std::vector<ChangeList::Changes> changes);
  std::vector<ChangeList::Changes> TakeChanges(const CheckpointOptions& options);
  absl::Status EraseRows(const storage::ShardFileReader& file);
  absl::Status ReadFilters(const storage::ShardFileReader& file, const RestorePlan* another);
  absl::Status CheckShapes(const storage::ShardFileHeader& header) const;
  absl::Status ReadRows(const storage::ShardFileReader& file);
  absl::Status ReadState(const storage::ShardFileReader& file);
  absl::Status SyncRemoved();
  void FreezeRemoved(FrozenState& out) const;
  absl::Status ReadRemoved(const storage::ShardFileReader& image);
  absl::Status ReadPreimageBlocks(const storage::ShardFileReader& image);
  void SetClock(Step clock, bool preimages);

  const ShardOptions options_;
  std::vector<uint32_t> dims_;
  std::vector<ShardTable> tables_;
  StepGate gate_;
  std::map<ContributionHandle, ShardUpdate> held_;
  ContributionHandle next_handle_ = 1;
  WindowLedger ledger_;
  CutBarrier barrier_;
  std::optional<Pending> pending_;
  Appended appended_;                  // null: nobody wants to know
  std::optional<Step> changes_since_;  // the cut that the tables' lists of changes began at
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_SHARD_H_
