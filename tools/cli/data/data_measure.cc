#include "tools/cli/data/data_measure.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/job/tables/field_tables.h"
#include "proto/job/tables/hashed_tables.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/data/distinct_counter.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/data_access.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

constexpr BatchLimit kAtOnce = {.lines = 4096, .features = uint64_t{1} << 20};
constexpr uint64_t kWindows = 8;

// Which table a feature's row is in, and a number that no key of another table has.
class TableOfFeature {
 public:
  // field_tables: of FieldTables.
  explicit TableOfFeature(const std::vector<uint32_t>& field_tables) {
    for (const uint32_t index : field_tables) of_field_.push_back(TableNumber(index));
    for (const uint32_t table : of_field_) tables_ = std::max(tables_, table + 1);
  }

  // Numbers of tables are below this.
  uint32_t tables() const { return tables_; }
  uint32_t Of(const Batch& batch, uint32_t example, uint32_t feature) const {
    if (tables_ == 1) return 0;
    return of_field_[batch.fields.empty() ? feature - batch.offsets[example]
                                          : batch.fields[feature]];
  }
  // Of one table: the key.
  uint64_t IdOf(uint32_t table, uint64_t key) const {
    return tables_ == 1 ? key : PositionOf(Key(key), TableSalt(TableId(table))).value;
  }

 private:
  std::vector<uint32_t> of_field_;
  uint32_t tables_ = 1;
};

// The most distinct keys over windows of `lines` lines: all of them, or kWindows that lie evenly
// between the first and the last whole one.
class WindowKeys {
 public:
  WindowKeys(uint64_t lines, uint64_t all_lines, const TableOfFeature* tables)
      : lines_(std::max<uint64_t>(lines, 1)),
        whole_(all_lines / lines_),
        tables_(tables),
        now_(tables->tables()),
        most_of_table_(tables->tables()) {}

  void Add(const Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i) {
      if (window_ == next_) AddExample(batch, i);
      if (++seen_ < lines_) continue;
      seen_ = 0;
      if (window_ == next_) FindNext();
      ++window_;
    }
  }
  uint64_t most() const { return most_; }
  uint64_t most(uint32_t table) const { return most_of_table_[table]; }

 private:
  void AddExample(const Batch& batch, uint32_t i) {
    for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
      const uint32_t table = tables_->Of(batch, i, f);
      if (!keys_.insert(tables_->IdOf(table, batch.keys[f])).second) continue;
      most_of_table_[table] = std::max(most_of_table_[table], ++now_[table]);
    }
    most_ = std::max<uint64_t>(most_, keys_.size());
  }
  void FindNext() {
    keys_.clear();
    std::fill(now_.begin(), now_.end(), 0);
    ++counted_;
    next_ = whole_ <= kWindows ? next_ + 1 : counted_ * (whole_ - 1) / (kWindows - 1);
  }

  const uint64_t lines_, whole_;
  const TableOfFeature* const tables_;
  uint64_t seen_ = 0, window_ = 0;   // lines of the window at hand, and its number
  uint64_t counted_ = 0, next_ = 0;  // windows that were counted, and the next one that is
  uint64_t most_ = 0;
  std::unordered_set<uint64_t> keys_;
  std::vector<uint64_t> now_, most_of_table_;  // by table
};

// The most features of so many lines in turn.
class WindowFeatures {
 public:
  explicit WindowFeatures(uint64_t lines) : lines_(std::max<uint64_t>(lines, 1)) {}

  void Add(uint64_t features) {
    now_ += features;
    most_ = std::max(most_, now_);
    if (++seen_ < lines_) return;
    seen_ = now_ = 0;
  }
  uint64_t most() const { return most_; }

 private:
  const uint64_t lines_;
  uint64_t seen_ = 0, now_ = 0, most_ = 0;
};

// Whether some field of an example has several features that are summed before a model sees them.
bool NeedsPooling(const Batch& batch) {
  if (batch.fields.empty() || batch.sequences > 0) return false;
  for (uint32_t i = 0; i < batch.size; ++i) {
    const auto begin = batch.fields.begin() + batch.offsets[i];
    const auto end = batch.fields.begin() + batch.offsets[i + 1];
    if (std::adjacent_find(begin, end) != end) return true;
  }
  return false;
}

// As worker/async/training_strategy.h pulls.
uint64_t BatchesPerPull(const TrainingSpec& training) {
  if (training.mode() == "downpour") return std::max(1u, training.n_fetch());
  if (training.mode() == "easgd") return std::max(1u, training.tau());
  return 1;
}

// Reads all lines of an index in order. Errors are those of the source.
absl::Status ForBatches(const JobSpec& spec, const InputIndex& index, const DataShape& shape,
                        const std::function<void(const Batch&)>& body) {
  auto source = DataAccess::Files()->Open(spec, index, shape);
  if (!source.ok()) return source.status();
  Batch batch;
  for (uint64_t line = 0; line < index.lines();) {
    const absl::StatusOr<uint64_t> read =
        ReadIndexedLines(source->get(), line, index.lines(), kAtOnce, &batch);
    if (!read.ok()) return read.status();
    line += *read;
    body(batch);
  }
  return absl::OkStatus();
}

void CountFeatures(const Batch& batch, DataMeasure* measure) {
  for (uint32_t i = 0; i < batch.size; ++i) {
    measure->of_lines.Add(batch.offsets[i + 1] - batch.offsets[i]);
  }
}

absl::Status MeasureEval(const JobSpec& spec, const DataShape& shape, DataMeasure* measure) {
  if (spec.data().eval().empty()) return absl::OkStatus();
  const auto files =
      ListFiles("spec.data.eval", {spec.data().eval().begin(), spec.data().eval().end()});
  if (!files.ok()) return files.status();
  const auto index = DataAccess::Files()->BuildIndex(
      spec, *files, {.labels = Labels::kOptional, .training = shape});
  if (!index.ok()) return index.status();
  measure->eval_lines = index->lines();
  if (index->lines() == 0) return absl::OkStatus();
  return ForBatches(spec, *index, shape,
                    [&](const Batch& batch) { CountFeatures(batch, measure); });
}

}  // namespace

absl::StatusOr<DataMeasure> MeasureData(const JobSpec& spec) {
  const auto files =
      ListFiles("spec.data.train", {spec.data().train().begin(), spec.data().train().end()});
  if (!files.ok()) return files.status();
  const auto index = DataAccess::Files()->BuildIndex(spec, *files, {});
  if (!index.ok()) return index.status();

  const TrainingSpec& training = spec.training();
  const uint64_t lanes = training.lanes(), batch_size = training.batch_size();
  const uint64_t workers = spec.replicas().workers();
  const uint64_t lanes_here = (lanes + workers - 1) / workers;
  const auto field_tables = FieldTables(spec, index->shape().fields());
  if (!field_tables.ok()) return field_tables.status();
  const TableOfFeature tables(*field_tables);
  DataMeasure measure;
  measure.batches_per_pull = BatchesPerPull(training);
  measure.lines = index->lines();
  measure.fields = index->shape().fields();
  measure.numeric = index->shape().numeric();
  const auto windows = [&](uint64_t batches) {
    return WindowKeys(batch_size * batches, index->lines(), &tables);
  };
  WindowKeys batch_keys = windows(1), push_keys = windows(lanes_here), step_keys = windows(lanes),
             pull_keys = windows(measure.batches_per_pull);
  WindowFeatures batch_features(batch_size);
  DistinctCounter of_lane;
  uint64_t lines_of_lane = index->lines() / lanes + 1;
  std::vector<DistinctCounter> rows(tables.tables());
  uint64_t examples = 0, features = 0, bytes = 0;
  for (const InputTask& task : index->tasks()) {
    bytes += task.bytes();
    measure.task_line_bytes = std::max(measure.task_line_bytes, task.bytes() / task.lines());
  }
  absl::Status read = ForBatches(spec, *index, index->shape(), [&](const Batch& batch) {
    examples += batch.size;
    features += batch.keys.size();
    measure.pooled = measure.pooled || NeedsPooling(batch);
    CountFeatures(batch, &measure);
    for (uint32_t i = 0; i < batch.size; ++i) {
      batch_features.Add(batch.offsets[i + 1] - batch.offsets[i]);
      for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f) {
        const uint32_t table = tables.Of(batch, i, f);
        rows[table].Add(batch.keys[f]);
        if (lines_of_lane > 0) of_lane.Add(tables.IdOf(table, batch.keys[f]));
      }
      if (lines_of_lane > 0) --lines_of_lane;
    }
    for (WindowKeys* window : {&batch_keys, &push_keys, &step_keys, &pull_keys}) {
      window->Add(batch);
    }
  });
  if (read.ok()) read = MeasureEval(spec, index->shape(), &measure);
  if (!read.ok()) return read;
  measure.line_bytes = measure.lines == 0 ? 0 : bytes / measure.lines;
  measure.features_per_example =
      examples == 0 ? 0 : static_cast<double>(features) / static_cast<double>(examples);
  measure.features_per_batch = batch_features.most();
  for (uint32_t t = 0; t < tables.tables(); ++t) {
    const uint64_t count = rows[t].Count();
    measure.distinct_keys += count;
    if (tables.tables() == 1) break;
    measure.of_table.push_back({count, batch_keys.most(t), push_keys.most(t), step_keys.most(t)});
  }
  measure.keys_per_batch = batch_keys.most();
  measure.keys_per_push = push_keys.most();
  measure.keys_per_step = step_keys.most();
  measure.keys_per_pull = pull_keys.most();
  measure.keys_of_lane = of_lane.Count();
  return measure;
}

}  // namespace strata
