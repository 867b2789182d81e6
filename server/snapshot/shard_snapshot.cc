#include "server/snapshot/shard_snapshot.h"

#include <optional>
#include <utility>

namespace strata::server {

absl::Status FrozenState::AddTo(storage::ShardFileWriter& writer) const {
  for (const Section& section : sections) {
    absl::Status s = writer.AddSection({section.type, section.partitions, section.bytes});
    if (!s.ok()) return s;
  }
  for (const PreImages& images : preimages) {
    absl::Status s = writer.AddPreImages({images.table, images.positions, images.weights});
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

ShardSnapshot::ShardSnapshot(Options options, std::span<ShardTable> tables)
    : state_(std::move(options.state)), increment_(!options.changes.empty()), tables_(tables) {
  for (size_t t = 0; t < tables.size(); ++t) {
    TableSnapshot::Options of_table = {.table = tables[t].spec().id,
                                       .row_bytes = tables[t].layout().row_bytes(),
                                       .first = options.first,
                                       .last = options.last,
                                       .rows = tables[t].counters().rows,
                                       .step = options.step,
                                       .steps_tell = tables[t].StepsTell(options.step)};
    uint64_t rows = of_table.rows;
    if (increment_) {
      ChangeList::Changes& changes = options.changes[t];
      of_table.base_step = changes.base_step;
      rows = changes.positions.size();
      of_table.changed = std::move(changes.positions);
      hash_before_ += changes.before;
      rows_before_ += changes.rows_before;
    }
    expected_bytes_ += rows * (sizeof(Position) + of_table.row_bytes);
    snapshots_.push_back(std::make_unique<TableSnapshot>(std::move(of_table)));
    tables[t].Watch(snapshots_.back().get());
  }
  SkipDone();
}

ShardSnapshot::~ShardSnapshot() {
  for (size_t t = 0; t < snapshots_.size(); ++t) tables_[t].Unwatch(snapshots_[t].get());
}

void ShardSnapshot::SkipDone() {
  for (; !done() && snapshots_[table_]->done(); ++table_) {
    tables_[table_].Unwatch(snapshots_[table_].get());
  }
}

absl::Status ShardSnapshot::Next(RowBlock& out) {
  absl::Status s = snapshots_[table_]->Next(tables_[table_].rows(), out);
  if (s.ok()) SkipDone();
  return s;
}

size_t ShardSnapshot::held() const {
  size_t bytes = 0;
  for (const auto& s : snapshots_) bytes += s->held();
  return bytes;
}

absl::StatusOr<storage::ShardFileSummary> WriteSnapshot(ShardSnapshot& snapshot,
                                                        const std::string& path) {
  auto writer = storage::ShardFileWriter::Create(path, snapshot.state().header);
  if (!writer.ok()) return writer.status();
  RowBlock block;
  while (!snapshot.done()) {
    absl::Status s = snapshot.Next(block);
    if (s.ok()) s = (*writer)->AddRows(block.table, block.positions, block.rows);
    if (s.ok()) s = (*writer)->AddErased(block.table, block.erased);
    if (!s.ok()) return s;
  }
  if (absl::Status s = snapshot.state().AddTo(**writer); !s.ok()) return s;
  return (*writer)->Finish();
}

}  // namespace strata::server
