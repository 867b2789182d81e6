#include "server/shard/shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::server {

Shard::Shard(ShardOptions options, std::vector<std::unique_ptr<storage::RowTable>> rows)
    : options_(std::move(options)),
      gate_(options_.synchronous ? options_.lanes : 1, Step(0), /*preimages=*/false),
      barrier_(options_.lanes, 0) {
  tables_.reserve(options_.tables.size());
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    tables_.emplace_back(options_.tables[t], options_.seed, std::move(rows[t]),
                         options_.partitioning);
    dims_.push_back(options_.tables[t].push_dim());
  }
}

std::string Shard::values_device() const {
  std::string device;
  bool first = true;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (options_.tables[t].kind == TableKind::kDense) continue;
    const std::string here = tables_[t].values_device();
    if (!first && here != device) return std::string();
    device = here;
    first = false;
  }
  return device;
}

uint64_t Shard::refused_rows() const {
  uint64_t rows = 0;
  for (const ShardTable& t : tables_) rows += t.refused_rows();
  return rows;
}

std::vector<RefusedRowCount> Shard::first_refused() const {
  std::vector<RefusedRowCount> first;
  for (const ShardTable& t : tables_) {
    for (const RefusedRowCount& row : t.first_refused().rows()) {
      if (first.size() < FirstRefusedRows::kMost) first.push_back(row);
    }
  }
  return first;
}

uint64_t Shard::clipped_rows() const {
  uint64_t rows = 0;
  for (const ShardTable& t : tables_) rows += t.clipped_rows();
  return rows;
}

LifeCycleCounters Shard::life_cycle() const {
  LifeCycleCounters sum;
  for (const ShardTable& t : tables_) sum += t.life_cycle();
  return sum;
}

storage::TableCounters Shard::counters() const {
  storage::TableCounters sum;
  for (const ShardTable& t : tables_) {
    const storage::TableCounters c = t.counters();
    sum.rows += c.rows;
    sum.dram_rows += c.dram_rows;
    sum.dram_bytes += c.dram_bytes;
    sum.hits += c.hits;
    sum.ssd_reads += c.ssd_reads;
    sum.absent += c.absent;
    sum.evicted += c.evicted;
    sum.written_back += c.written_back;
    sum.written_ahead += c.written_ahead;
    sum.pinned += c.pinned;
    sum.hbm_rows += c.hbm_rows;
    sum.hbm_bytes += c.hbm_bytes;
    sum.hbm_hits += c.hbm_hits;
    sum.hbm_evicted += c.hbm_evicted;
    sum.hbm_written_back += c.hbm_written_back;
    sum.hbm_gathered += c.hbm_gathered;
    sum.hbm_updated += c.hbm_updated;
    sum.hbm_extra_bytes += c.hbm_extra_bytes;
  }
  return sum;
}

GateAnswer Shard::Contribute(Step step, LaneNode node, ShardUpdate update) {
  const ContributionHandle handle = next_handle_++;
  GateAnswer answer = gate_.Contribute(step, {node, update.examples, update.fingerprint, handle});
  for (const ContributionHandle dropped : answer.dropped) held_.erase(dropped);
  if (answer.verdict == GateVerdict::kHeld) held_.emplace(handle, std::move(update));
  return answer;
}

// Sums of one contribution alone stay where they lie; more are added on the host.
absl::StatusOr<std::vector<TableSums>> Shard::RootSums() {
  const std::vector<SumInstruction> plan = gate_.RootPlan();
  std::vector<TableSums> roots;
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::map<ContributionHandle, TableSums> by_handle;
    for (const auto& [handle, update] : held_) {
      if (update.tables[t].size() > 0) by_handle.emplace(handle, update.tables[t]);
    }
    for (auto& [handle, sums] : by_handle) {
      if (by_handle.size() == 1) break;
      auto here = tables_[t].OnHost(sums);
      if (!here.ok()) return here.status();
      sums = *std::move(here);
    }
    roots.push_back(EvaluateRoot(plan, by_handle, dims_[t]));
  }
  return roots;
}

// 1 sum the held contributions (RootSums), 2 append (Append), 3 forget the old pre-images (Begin),
// 4 apply, 5 advance the clock (both Finish). A crash before 2 has ended loses nothing that anyone
// was told; after it replay does 3 to 5.
absl::StatusOr<bool> Shard::TryCommit() {
  if (!behind()) {
    if (!gate_.Complete()) return false;
    auto roots = RootSums();
    if (!roots.ok()) return roots.status();
    const uint64_t examples = gate_.Examples();
    if (absl::Status s = Failpoint("server.commit.append"); !s.ok()) return s;
    gate_.BeginCommit();
    storage::LogHeader header = RecordHeader(RecordKind::kStep);
    header.examples = examples;
    if (absl::Status s = Append(header, *roots); !s.ok()) {
      gate_.AbandonCommit();
      return s;
    }
    Begin({header.step.value, examples}, *std::move(roots));
  }
  if (absl::Status s = Finish(); !s.ok()) return s;
  return true;
}

absl::StatusOr<Shard::WindowResult> Shard::ApplyWindow(TaskId task, uint64_t window, LaneId lane,
                                                       ShardUpdate update) {
  if (absl::Status s = Finish(); !s.ok()) return s;
  switch (ledger_.Check(task, window)) {
    case WindowVerdict::kNew:
      break;
    case WindowVerdict::kRepeated:
    // A task is closed once all its windows are applied, so this is one of them. It is no error: a
    // checkpoint's cut may be older than what its shards were told is closed, and a job that
    // resumes from it hands such a task out again.
    case WindowVerdict::kClosed:
      return WindowResult::kRepeated;
    case WindowVerdict::kTooFar:
      return WindowResult::kTooFar;
  }
  storage::LogHeader header = RecordHeader(RecordKind::kWindow);
  header.examples = update.examples;
  header.task = task;
  header.window = window;
  header.lane = lane;
  if (absl::Status s = Failpoint("server.commit.append"); !s.ok()) return s;
  if (absl::Status s = Append(header, update.tables); !s.ok()) return s;
  ledger_.Record(task, window);
  Begin({header.step.value, update.examples}, std::move(update.tables));
  if (absl::Status s = Finish(); !s.ok()) return s;
  return WindowResult::kApplied;
}

absl::Status Shard::CheckCut(absl::string_view what, CutNumber cut) const {
  if (barrier_.MayExist(cut)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      what, ".cut ", cut, ": at shard ", options_.id.value, " cuts up to ", barrier_.over(),
      " are over, so that none after ", barrier_.over() + 1, " can have begun"));
}

absl::Status Shard::CutTaken() {
  storage::LogHeader header = RecordHeader(RecordKind::kCut);
  header.step = clock();
  header.window = barrier_.pending();
  absl::Status s = Append(header, {});
  if (s.ok()) {
    barrier_.Taken();
  } else if (!STRATA_MUTATION("cut.failed_keeps_holding")) {
    barrier_.End(barrier_.pending());  // no lane marks it again
  }
  return s;
}

storage::LogHeader Shard::RecordHeader(RecordKind kind) const {
  storage::LogHeader header;
  header.kind = static_cast<uint16_t>(kind);
  header.job = options_.job;
  header.shard = options_.id;
  header.generation = options_.generation;
  header.step = clock().Next();
  header.partitions = options_.range;
  header.map_epoch = options_.map_epoch;
  header.uid = options_.identity.job;
  return header;
}

absl::Status Shard::Append(const storage::LogHeader& header, std::span<const TableSums> tables) {
  if (options_.log == nullptr || STRATA_MUTATION("bsp.ack_before_log")) return absl::OkStatus();
  std::vector<TableSums> here;  // what a device has is copied for the record
  for (size_t t = 0; t < tables.size(); ++t) {
    auto sums = tables_[t].OnHost(tables[t]);
    if (!sums.ok()) return sums.status();
    here.push_back(*std::move(sums));
  }
  if (STRATA_MUTATION("bsp.commit_in_parts") && tables.size() > 1) {
    if (absl::Status s = Append(header, tables.first(1)); !s.ok()) return s;
  }
  std::string heads;
  const std::vector<std::span<const uint8_t>> parts = EncodeTables(here, dims_, heads);
  LogEnd end = {header.step.value, barrier_.taken()};
  if (header.kind == static_cast<uint16_t>(RecordKind::kCut)) end.cut = header.window;
  const bool unwritten = STRATA_MUTATION("chain.forward_first");
  if (appended_ && unwritten) appended_({header, {}, parts, std::nullopt, end});
  absl::StatusOr<storage::LogPosition> at;
  uint32_t crc32c = 0;
  {
    const BlockingSection disk;
    at = options_.log->Append(storage::LogEntry{header, parts, std::nullopt, &crc32c});
  }
  if (!at.ok()) return at.status();
  if (appended_) Failpoint("server.chain.appended").IgnoreError();  // it is in the log: no error
  if (appended_ && !unwritten) appended_({header, *at, parts, crc32c, end});
  return absl::OkStatus();
}

void Shard::Begin(UpdateStep step, std::vector<TableSums> tables) {
  if (options_.synchronous) {
    for (ShardTable& t : tables_) t.preimages().Clear();
  }
  pending_ = Pending{step, std::move(tables)};
}

absl::Status Shard::Finish() {
  if (!pending_.has_value()) return absl::OkStatus();
  if (absl::Status s = Failpoint("server.commit.appended"); !s.ok()) return s;
  for (; pending_->table < tables_.size(); ++pending_->table, pending_->done = 0) {
    absl::Status s = tables_[pending_->table].Apply(
        pending_->tables[pending_->table], pending_->step,
        options_.synchronous &&
            (gate_.committing() || !STRATA_MUTATION("bsp.replay_without_preimages")),
        pending_->done);
    if (!s.ok()) return s;
  }
  if (absl::Status s = SweepTables(); !s.ok()) return s;
  if (absl::Status s = Failpoint("server.commit.applied"); !s.ok()) return s;
  const Step committed(pending_->step.number);
  pending_.reset();
  if (!gate_.committing()) {
    SetClock(committed, options_.synchronous);  // replay, and asynchronous windows
    return absl::OkStatus();
  }
  gate_.Appended();
  held_.clear();
  return absl::OkStatus();
}

absl::Status Shard::SweepTables() {
  const uint64_t step = pending_->step.number;
  SweepOptions sweep{step, options_.synchronous, options_.removed.get()};
  // Asynchronous modes number removals by the cut that will hold them, as checkpoints are.
  sweep.removed_to =
      options_.synchronous ? step : std::max(barrier_.taken(), options_.start.value) + 1;
  size_t& swept = pending_->swept_tables;
  for (; swept < tables_.size(); ++swept, pending_->next_swept = PartitionId()) {
    absl::Status s = tables_[swept].Sweep(options_.range, sweep, pending_->next_swept);
    if (!s.ok()) return s;
  }
  return options_.removed == nullptr ? absl::OkStatus() : options_.removed->EndCommit();
}

void Shard::SetClock(Step clock, bool preimages) {
  gate_.Reset(clock, preimages);
  held_.clear();
}

absl::Status Shard::Read(TableId table, std::span<const Position> positions, void* out,
                         const ReadAs& as) {
  if (absl::Status s = Finish(); !s.ok()) return s;
  return tables_[table.value].Read(positions, out, as);
}

absl::Status Shard::ReadPreimages(TableId table, std::span<const Position> positions, void* out,
                                  const ReadAs& as) {
  return tables_[table.value].ReadPreimages(positions, out, as);
}

absl::Status Shard::Warm(TableId table, std::span<const Position> positions, KeptRows& kept) {
  return tables_[table.value].Warm(positions, kept);
}

absl::StatusOr<uint64_t> Shard::Tidy(size_t rows) {
  uint64_t bytes = 0;
  for (ShardTable& t : tables_) {
    const absl::StatusOr<size_t> written = t.rows().Tidy(rows);
    if (!written.ok()) return written.status();
    bytes += *written * t.layout().row_bytes();
  }
  return bytes;
}

void Shard::Unpin(TableId table, std::span<const Position> positions, KeptRows& kept) {
  tables_[table.value].Unpin(positions, kept);
}

}  // namespace strata::server
