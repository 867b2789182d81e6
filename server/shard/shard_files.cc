// How a shard is written to and read from base images, checkpoint files and the log.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/core/mutation.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/failpoints.h"
#include "server/shard/another_rows.h"
#include "server/shard/earlier_commits.h"
#include "server/shard/file_sections.h"
#include "server/shard/shard.h"
#include "storage/checkpoint/shard_chain.h"

namespace strata::server {
namespace {

constexpr uint32_t kRowsPerPut = 1024;

}  // namespace

storage::ShardFileHeader Shard::FileHeader(storage::ShardFileKind kind, Step clock) const {
  storage::ShardFileHeader header;
  header.kind = kind;
  header.job = options_.job;
  header.generation = options_.generation;
  header.identity = options_.identity;
  header.map_epoch = options_.map_epoch;
  header.shard = options_.id;
  header.partitioning = options_.partitioning;
  header.partitions = options_.range;
  header.clock = clock;
  for (const ShardTable& t : tables_) header.tables.push_back(t.shape());
  return header;
}

// What an image or checkpoint stands for is not replayed again: its removals must be durable too.
absl::Status Shard::SyncRemoved() {
  if (options_.removed == nullptr) return absl::OkStatus();
  const BlockingSection disk;
  return options_.removed->Sync();
}

absl::Status Shard::StartRemoved(bool is_new) {
  if (options_.removed == nullptr) return absl::OkStatus();
  return is_new ? options_.removed->StartNew() : options_.removed->StartAt(0);
}

std::unique_ptr<ShardSnapshot> Shard::Snapshot(FrozenState state,
                                               std::vector<ChangeList::Changes> changes) {
  return std::make_unique<ShardSnapshot>(ShardSnapshot::Options{.state = std::move(state),
                                                                .first = first_position(),
                                                                .last = last_position(),
                                                                .step = clock().value,
                                                                .changes = std::move(changes)},
                                         tables_);
}

absl::StatusOr<std::unique_ptr<ShardSnapshot>> Shard::SnapshotImage(uint64_t log_segment) {
  if (absl::Status s = Failpoint("server.image"); !s.ok()) return s;
  if (absl::Status s = Finish(); !s.ok()) return s;
  if (absl::Status s = SyncRemoved(); !s.ok()) return s;
  FrozenState state;
  state.header = FileHeader(storage::ShardFileKind::kBaseImage, clock());
  state.header.log_segment = log_segment;
  FreezeState(state);
  FreezeFilters(state);
  FreezeEarlierCommits(state);
  if (absl::Status s = FreezePreimages(state); !s.ok()) return s;
  FreezeRemoved(state);
  return Snapshot(std::move(state), {});
}

// By table, if they are what an increment on options.base needs; and begins new lists.
std::vector<ChangeList::Changes> Shard::TakeChanges(const CheckpointOptions& options) {
  bool known = options.base.has_value() && changes_since_ == options.base;
  bool steps_tell = true;
  for (ShardTable& t : tables_) {
    known &= t.changes().active();
    steps_tell &= t.StepsTell(clock().value);
  }
  std::vector<ChangeList::Changes> changes;
  for (ShardTable& t : tables_) {
    if (known && steps_tell) changes.push_back(t.changes().Take());
    t.changes().Stop();
    if (options.follow && steps_tell) t.changes().Begin(clock().value, t.counters().rows);
  }
  changes_since_ = options.cut;
  return changes;
}

absl::StatusOr<std::unique_ptr<ShardSnapshot>> Shard::SnapshotCheckpoint(
    const CheckpointOptions& options) {
  if (absl::Status s = Failpoint("server.checkpoint"); !s.ok()) return s;
  if (absl::Status s = Finish(); !s.ok()) return s;
  if (absl::Status s = SyncRemoved(); !s.ok()) return s;
  std::vector<ChangeList::Changes> changes = TakeChanges(options);
  FrozenState state;
  state.header = FileHeader(
      changes.empty() ? storage::ShardFileKind::kCheckpoint : storage::ShardFileKind::kIncrement,
      options.cut);
  state.header.cut = options.number;
  if (!changes.empty()) {
    state.header.base = *options.base;
    state.header.base_cut = options.base_number;
    std::vector<uint8_t> rows;
    for (const ShardTable& t : tables_) {
      const uint64_t n = t.counters().rows;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&n);
      rows.insert(rows.end(), bytes, bytes + sizeof n);
    }
    state.sections.push_back({storage::kTableRowsSection, options_.range, std::move(rows)});
  }
  FreezeState(state);
  FreezeFilters(state);
  FreezeEarlierCommits(state);
  return Snapshot(std::move(state), std::move(changes));
}

absl::StatusOr<std::unique_ptr<ShardSnapshot>> Shard::SnapshotSums() {
  if (absl::Status s = Finish(); !s.ok()) return s;
  FrozenState state;
  state.header = FileHeader(storage::ShardFileKind::kCheckpoint, clock());
  return Snapshot(std::move(state), {});
}

absl::Status Shard::WriteImage(const std::string& path, uint64_t log_segment) {
  auto snapshot = SnapshotImage(log_segment);
  if (!snapshot.ok()) return snapshot.status();
  return WriteSnapshot(**snapshot, path).status();
}

absl::StatusOr<storage::ShardFileSummary> Shard::WriteCheckpoint(const std::string& path,
                                                                 Step cut) {
  auto snapshot = SnapshotCheckpoint({.cut = cut});
  if (!snapshot.ok()) return snapshot.status();
  return WriteSnapshot(**snapshot, path);
}

absl::StatusOr<storage::ShardFileSummary> Shard::Summarize() {
  if (absl::Status s = Finish(); !s.ok()) return s;
  storage::ShardFileSummary summary;
  for (ShardTable& t : tables_) {
    absl::Status s = t.rows().Scan(
        first_position(), last_position(), [&](Position position, std::span<const uint8_t> row) {
          ++summary.rows;
          summary.hash += storage::HashRow(t.spec().id, t.spec().KeyAtPosition(position), row);
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
  }
  return summary;
}

absl::Status Shard::CheckShapes(const storage::ShardFileHeader& header) const {
  std::vector<storage::TableShape> shapes;
  for (const ShardTable& t : tables_) shapes.push_back(t.shape());
  if (header.tables != shapes) {
    return absl::FailedPreconditionError(
        "the file's tables have other shapes (dimension, optimizer or kind) than the job's");
  }
  if (!(header.partitioning == options_.partitioning)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file has ", header.partitioning.count(), " partitions, the job ",
                     options_.partitioning.count(), ": set spec.storage.partitions to that"));
  }
  return absl::OkStatus();
}

absl::Status Shard::ReadRows(const storage::ShardFileReader& file) {
  const PartitionRange& theirs = file.header().partitions;
  const uint32_t first = std::max(theirs.first.value, options_.range.first.value);
  const uint32_t last = std::min(theirs.last.value, options_.range.last.value);
  const uint64_t shared = first <= last ? uint64_t{last} - first + 1 : 0;
  const uint64_t whole = uint64_t{theirs.last.value} - theirs.first.value + 1;
  for (ShardTable& t : tables_) {
    t.rows().Expect(file.rows(t.spec().id) * shared / whole);
    absl::Status s = file.ReadRows(
        t.spec().id, options_.range,
        [&](std::span<const Position> positions, const uint8_t* rows) -> absl::Status {
          for (size_t at = 0; at < positions.size(); at += kRowsPerPut) {
            const size_t n = std::min<size_t>(kRowsPerPut, positions.size() - at);
            absl::Status put = t.Put(positions.subspan(at, n), rows + at * t.layout().row_bytes());
            if (!put.ok()) return put;
          }
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Of an increment: rows of the files before it that are gone.
absl::Status Shard::EraseRows(const storage::ShardFileReader& file) {
  for (ShardTable& t : tables_) {
    absl::Status s =
        file.ReadErased(t.spec().id, options_.range,
                        [&](std::span<const Position> positions) { return t.Erase(positions); });
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Shard::LoadImage(const storage::ShardFileReader& image) {
  const storage::ShardFileHeader& header = image.header();
  if (!(header.identity == options_.identity)) {
    return absl::FailedPreconditionError(absl::StrCat("the image is of ", Describe(header.identity),
                                                      ", not of ", Describe(options_.identity)));
  }
  if (header.kind != storage::ShardFileKind::kBaseImage ||
      header.generation != options_.generation || header.shard != options_.id ||
      !(header.partitions == options_.range)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the image is not of job ", options_.job.value, ", generation ",
                     options_.generation.value, ", shard ", options_.id.value));
  }
  if (absl::Status s = CheckShapes(header); !s.ok()) return s;
  if (absl::Status s = ReadRows(image); !s.ok()) return s;
  if (absl::Status s = ReadFilters(image, nullptr); !s.ok()) return s;
  if (absl::Status s = CountFromFile(image); !s.ok()) return s;
  if (absl::Status s = ReadRemoved(image); !s.ok()) return s;
  if (options_.synchronous) return ReadPreimageBlocks(image);
  return ReadState(image);
}

absl::Status Shard::Restore(const storage::ShardFileReader& segment, Step start_step,
                            const RestorePlan* another, uint64_t row_clock) {
  if (another != nullptr) {
    const RowTaker taker{&tables_, options_.range, options_.partitioning, options_.seed, row_clock};
    if (absl::Status s = TakeRows(*another, segment, taker); !s.ok()) return s;
  } else {
    if (absl::Status s = CheckShapes(segment.header()); !s.ok()) return s;
    if (absl::Status s = EraseRows(segment); !s.ok()) return s;
    if (absl::Status s = ReadRows(segment); !s.ok()) return s;
    if (absl::Status s = ReadState(segment); !s.ok()) return s;
    if (absl::Status s = CountFromFile(segment); !s.ok()) return s;
  }
  if (absl::Status s = ReadFilters(segment, another); !s.ok()) return s;
  if (options_.synchronous) SetClock(start_step, false);
  return absl::OkStatus();
}

absl::Status Shard::Replay(const storage::LogRecordView& record) {
  const storage::LogHeader& header = record.header;
  if (header.generation != options_.generation || header.shard != options_.id) {
    return absl::OkStatus();
  }
  if (header.uid != options_.identity.job) {
    return absl::FailedPreconditionError(absl::StrCat(
        "log segment ", record.at.segment, ", offset ", record.at.offset, ": the record is of job ",
        header.uid.text(), ", not of job ", options_.identity.job.text()));
  }
  const auto kind = static_cast<RecordKind>(header.kind);
  if (kind == RecordKind::kCut) {
    if (header.window > barrier_.taken()) barrier_ = CutBarrier(options_.lanes, header.window);
    return absl::OkStatus();
  }
  const auto expected = options_.synchronous ? RecordKind::kStep : RecordKind::kWindow;
  if (kind != expected) {
    return absl::DataLossError(absl::StrCat("log segment ", record.at.segment, ", offset ",
                                            record.at.offset, ": unexpected kind ", header.kind));
  }
  const bool there = header.step <= clock();
  if (there && !STRATA_MUTATION("bsp.replayed_over_image")) return absl::OkStatus();
  if (!there && header.step != clock().Next()) {
    return absl::DataLossError(absl::StrCat(
        "log segment ", record.at.segment, ", offset ", record.at.offset, ": step ",
        header.step.value, " of shard ", options_.id.value, " follows ", clock().value));
  }
  auto tables = ParseTables(record.payload, dims_);
  if (!tables.ok()) return tables.status();
  BeginAgain(header, *std::move(tables));
  return Finish();
}

void Shard::BeginAgain(const storage::LogHeader& header, std::vector<TableSums> tables) {
  if (!options_.synchronous) ledger_.Record(header.task, header.window);
  Begin({header.step.value, header.examples}, std::move(tables));
}

absl::Status Shard::CheckTaken(const storage::LogHeader& header, bool cut) const {
  const auto kind = static_cast<RecordKind>(header.kind);
  const auto wanted = options_.synchronous ? RecordKind::kStep : RecordKind::kWindow;
  if (header.generation != options_.generation || header.shard != options_.id ||
      header.uid != options_.identity.job || (kind != wanted && !cut)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a record of job ", header.uid.text(), ", generation ", header.generation.value, ", shard ",
        header.shard.value, ", kind ", header.kind, " is none of shard ", options_.id.value,
        " of job ", options_.identity.job.text(), ", generation ", options_.generation.value));
  }
  return absl::OkStatus();
}

absl::Status Shard::Take(const ReceivedRecord& received, const std::function<void()>& appended) {
  if (absl::Status s = Finish(); !s.ok()) return s;
  const storage::LogRecordView& record = received.record;
  const storage::LogHeader& header = record.header;
  const bool cut =
      static_cast<RecordKind>(header.kind) == RecordKind::kCut && !options_.synchronous;
  if (absl::Status s = CheckTaken(header, cut); !s.ok()) return s;
  const LogEnd end = log_end();
  const EntryFit fit =
      cut ? FitOfCut(end, {header.step.value, header.window}) : FitOfStep(end, header.step.value);
  if (fit == EntryFit::kHave) return absl::OkStatus();
  if (fit == EntryFit::kGap) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", header.step.value, " of shard ", options_.id.value,
                     " does not follow the end of its log, step ", end.step));
  }
  absl::StatusOr<std::vector<TableSums>> tables = std::vector<TableSums>();
  if (!cut) tables = ParseTables(record.payload, dims_, received.owner);
  if (!tables.ok()) return tables.status();
  if (!options_.synchronous && !cut) {
    // How far ahead a task or window may be was for the head to say.
    const WindowVerdict verdict = ledger_.Check(header.task, header.window);
    if (verdict == WindowVerdict::kRepeated || verdict == WindowVerdict::kClosed) {
      return absl::AlreadyExistsError(absl::StrCat(
          "window ", header.window, " of task ", header.task.value, " came as number ",
          header.step.value, " of shard ", options_.id.value, ", which has applied it before: ",
          "the log of the copy before this one is not the one that was copied here"));
    }
  }
  const std::span<const uint8_t> parts[] = {record.payload};
  absl::StatusOr<storage::LogPosition> at = storage::LogPosition();
  std::optional<uint32_t> crc32c = received.crc32c;
  // From here to the end of Finish the gate neither shows nor gathers, as in a commit of its own.
  const bool guarded = options_.synchronous && !STRATA_MUTATION("chain.taken_step_unguarded");
  if (guarded) gate_.BeginCommit();
  if (options_.log != nullptr) {
    const BlockingSection disk;
    at = options_.log->Append(storage::LogEntry{header, parts, received.crc32c, &crc32c.emplace()});
  }
  if (!at.ok()) {
    if (guarded) gate_.AbandonCommit();
    return at.status();
  }
  if (appended_) Failpoint("server.chain.appended").IgnoreError();  // it is in the log: no error
  const LogEnd next = cut ? LogEnd{end.step, header.window} : LogEnd{end.step + 1, end.cut};
  if (appended_) appended_({header, *at, parts, crc32c, next});
  if (appended) appended();
  if (cut) return Replay(record);
  BeginAgain(header, *std::move(tables));
  return Finish();
}

}  // namespace strata::server
