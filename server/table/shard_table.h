// One table within one shard: rows read and updated by position, the pre-images of the last step,
// and what watches rows change: snapshots and the list of changes since a checkpoint.
#ifndef STRATA_SERVER_TABLE_SHARD_TABLE_H_
#define STRATA_SERVER_TABLE_SHARD_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/optimizer.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "server/protocol/life_cycle_admission.h"
#include "server/protocol/life_cycle_counters.h"
#include "server/protocol/life_cycle_removal.h"
#include "server/table/calls.h"
#include "server/table/change_list.h"
#include "server/table/device_stage.h"
#include "server/table/kept_rows.h"
#include "server/table/preimages.h"
#include "server/table/refused_rows.h"
#include "server/table/snapshot.h"
#include "server/table/sums.h"
#include "server/table/sweep_options.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/device_rows.h"
#include "storage/row/hash.h"
#include "storage/row/layout.h"
#include "storage/row/table.h"
#include "storage/row/update.h"

namespace strata::server {

// Touched by the shard's executor only. Work goes in chunks of at most kChunkRows rows, Warm's in
// those of kWarmRows, where values are on a device in those of ThereRows, and never holds more.
class ShardTable {
 public:
  static constexpr size_t kChunkRows = 2048;
  // Warm only looks at rows, and reads from below in larger batches.
  static constexpr size_t kWarmRows = 8 * kChunkRows;
  // Rows keep the low 32 bits of a step, which may be below 0.
  static constexpr uint64_t kStepWraps = uint64_t{1} << 31;

  // REQUIRES: `rows` holds rows of RowLayout::For(spec). `partitioning`: what life-cycle decisions
  // go by.
  ShardTable(const TableSpec& spec, uint64_t seed, std::unique_ptr<storage::RowTable> rows,
             Partitioning partitioning = Partitioning(1));

  const TableSpec& spec() const { return spec_; }
  const storage::RowLayout& layout() const { return layout_; }
  storage::TableShape shape() const {
    return {spec_.id, spec_.kind, layout_.dim, layout_.state_floats};
  }
  // Commits of earlier jobs that the optimizers' state has seen (ops::ScalarSource::CountFrom).
  uint64_t earlier_commits() const { return earlier_commits_; }
  void CountFrom(uint64_t earlier_commits);
  storage::RowTable& rows() { return *rows_; }
  storage::TableCounters counters() const { return rows_->counters(); }
  PreImages& preimages() { return preimages_; }
  // The device in whose memory values of Read and Apply may lie: that of the rows, where updates
  // take place there and need nothing of the values here. Empty: there is none. Constant.
  std::string values_device() const;

  // out: (n) rows of weights, encoded as `as` says, of strictly ascending positions; an absent row
  // reads as its initial weights, and nothing is created.
  absl::Status Read(std::span<const Position> positions, void* out, const ReadAs& as = {});
  // The same before the last step: where there is a pre-image, that.
  absl::Status ReadPreimages(std::span<const Position> positions, void* out, const ReadAs& as = {});
  // Moves rows up from below and pins them, from the first on, until half of the tier is pinned;
  // more than a quarter of the tier's rows are left where they are: the step in progress needs the
  // room. Nothing is created. A later Read or Apply with the same `kept` finds them at once.
  absl::Status Warm(std::span<const Position> positions, KeptRows& kept);
  // Ends the pins. `positions` are those that `kept` was filled for.
  void Unpin(std::span<const Position> positions, KeptRows& kept);

  // Applies the sums' rows from number `done` on, and advances `done` chunk by chunk: after an
  // error (of the tier below) the same call goes on where it stopped, and no row is updated twice.
  // A row is born only by an update that is applied to at least one of its segments: one whose
  // every gradient is refused (NaN, infinite, or a result that would be) leaves nothing behind.
  // A key without a row gets one only when the table's admission filter says so; else its gradient
  // is dropped. Ends the pins of sums.kept. With `keep_preimages` what rows weighed before is added
  // to preimages(). sums.values: (n, spec.push_dim()), or sums.values_there, of values_device().
  absl::Status Apply(const TableSums& sums, UpdateStep step, bool keep_preimages, size_t& done);

  // The sums with their values in the host's memory: as they are, or a copy.
  absl::StatusOr<TableSums> OnHost(const TableSums& sums);

  // Removes rows by a commit: the one way on which a row that lived leaves a table, so that
  // snapshots and the list of changes see it. Absent ones are left out. On error (of the tier
  // below) call again with the same. REQUIRES: positions strictly ascend.
  absl::Status Erase(std::span<const Position> positions);

  // Until Unwatch `snapshot` is told of every row before it changes. It outlives that.
  void Watch(TableSnapshot* snapshot) { snapshots_.push_back(snapshot); }
  void Unwatch(TableSnapshot* snapshot) { std::erase(snapshots_, snapshot); }
  // Rows' last_step compares with `clock` as numbers (TableSnapshot::Options::steps_tell).
  bool StepsTell(uint64_t clock) const {
    return clock < kStepWraps && newest_put_ <= static_cast<int64_t>(clock);
  }
  ChangeList& changes() { return changes_; }
  // Removes rows of the partitions of `range` that are looked at after the step (RemovalSpec of
  // job.proto), from partition `next` on, which it advances: after an error (of the tier below, of
  // options.removed) the same call goes on where it stopped. Call after all of the step's Apply.
  // Reads every row of those partitions once, in all tiers, and promotes only those that go.
  // Memory: PartitionSweep's, and pre-images.
  absl::Status Sweep(PartitionRange range, const SweepOptions& options, PartitionId& next);

  AdmissionFilter& admission() { return admission_; }
  const AdmissionFilter& admission() const { return admission_; }
  const Removal& removal() const { return removal_; }
  const LifeCycleCounters& life_cycle() const { return life_cycle_; }

  // Puts a row as it is (recovery and restore). REQUIRES: positions strictly ascend; `rows` (n,
  // row_bytes).
  absl::Status Put(std::span<const Position> positions, const uint8_t* rows);

  // Rows refused by Apply, in at least one segment.
  uint64_t refused_rows() const { return refused_rows_; }
  const FirstRefusedRows& first_refused() const { return first_refused_; }
  // Rows that Apply updated by less than their gradient (clipping), in at least one segment.
  uint64_t clipped_rows() const { return clipped_rows_; }

 private:
  // Before the resolved rows of a piece of work change or go.
  void TellWatchers(std::span<const Position> positions, std::span<const storage::RowRef> refs);
  // The changes that TellWatchers noted and that came about: changed(i) tells.
  template <typename Changed>
  void NoteChanges(std::span<const Position> positions, Changed changed);
  using Chunk = SumsChunk;
  absl::Status ApplyChunk(const Chunk& chunk, UpdateStep step, bool keep_preimages);
  // Into refs_; Locate leaves rows that lie on a device there.
  absl::Status Resolve(std::span<const Position> positions, storage::Access access,
                       std::span<storage::RowSlot> slots);
  absl::Status Locate(std::span<const Position> positions, storage::Access access,
                      std::span<storage::RowSlot> slots);
  absl::Status FillBorn(std::span<const Position> positions);
  absl::Status KeepWeights(std::span<const Position> positions);
  absl::Status Update(const Chunk& chunk, UpdateStep step);
  size_t ThereRows() const;
  absl::Status ReadThere(std::span<const Position> positions, const ReadAs& as);
  absl::Status ReadPreimagesThere(std::span<const Position> positions, float* there);
  absl::Status UpdateFromThere(const Chunk& chunk, storage::RowUpdate update);
  void NoteRefused(std::span<const Position> positions);
  void Touch(const Chunk& chunk, size_t i, UpdateStep step);
  // Takes out the keys that get no row. After an error, and for a chunk that is tried again, no key
  // is counted twice.
  absl::Status AdmitChunk(const TableSums& sums, size_t first, size_t n, UpdateStep step,
                          Chunk& chunk);
  absl::Status RemoveDoomed(const SweepOptions& options);
  // Rows that lived are to go: those who watch are told, what they weigh is added to `weighed`
  // unless that is null, and ErasePending will do it. All or, on error, nothing. REQUIRES: nothing
  // is pending; positions strictly ascend, at most a chunk.
  absl::Status LetGo(std::span<const Position> positions, PreImages* weighed);
  // Erases what EraseLater was told.
  absl::Status ErasePending();
  void EraseLater(Position position) { erase_.push_back(position); }
  // The part of kept->slots for `n` rows from `first` on; empty without one.
  static std::span<storage::RowSlot> Slots(KeptRows* kept, size_t first, size_t n);
  // Pins what Resolve just found of rows first .. first + n - 1, if all before are pinned.
  void PinMore(KeptRows& kept, size_t first, size_t n);

  const TableSpec spec_;
  const storage::RowLayout layout_;
  const size_t stride_;  // floats of a key in sums
  const uint64_t seed_;
  std::unique_ptr<storage::RowTable> rows_;
  std::vector<ops::ScalarSource> scalars_;  // by segment
  uint64_t earlier_commits_ = 0;
  PreImages preimages_;
  std::vector<TableSnapshot*> snapshots_;
  ChangeList changes_;
  int64_t newest_put_ = 0;  // the largest last_step that Put brought
  uint64_t refused_rows_ = 0;
  FirstRefusedRows first_refused_;
  uint64_t clipped_rows_ = 0;
  std::vector<Position> erase_;  // ascending: rows that go before anything else is done
  AdmissionFilter admission_;
  const Removal removal_;
  LifeCycleCounters life_cycle_;
  AdmittedChunk admitted_;
  // The partition that is being looked at.
  std::vector<PartitionSweep::Doomed> doomed_;
  size_t doomed_done_ = 0;
  PreImages removed_images_;  // of this step's removals
  const Partitioning partitioning_;
  storage::DeviceRows* const device_;  // of rows_, or null
  const bool updates_on_device_;  // not rows with a score, whose decay is Removal::ScoreAfter's
  // Scratch of one chunk.
  DeviceStage stage_;
  std::vector<uint32_t> elsewhere_;  // rows of the chunk that are not on the device
  std::vector<FirstChange> first_changes_;
  std::vector<storage::RowRef> refs_;
  std::vector<float> initial_;
  std::vector<ops::StepScalars> scalars_now_;  // by run
  std::vector<uint8_t*> host_rows_;            // null: on the device
  std::vector<uint8_t> outcome_;               // storage::RowOutcome
  std::vector<uint8_t> device_outcome_;
  std::vector<uint32_t> born_;  // on the device: number in the chunk
  std::vector<Key> born_keys_;  // as born_
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_SHARD_TABLE_H_
