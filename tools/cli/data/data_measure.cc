#include "tools/cli/data/data_measure.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "proto/strata/control.pb.h"
#include "tools/cli/data/distinct_counter.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/data_access.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

constexpr uint64_t kLinesAtOnce = 4096;
constexpr int kWindows = 8;

// The most distinct keys over the first kWindows windows of `lines` lines.
class WindowKeys {
 public:
  explicit WindowKeys(uint64_t lines) : lines_(std::max<uint64_t>(lines, 1)) {}

  void Add(const Batch& batch) {
    for (uint32_t i = 0; i < batch.size && windows_ < kWindows; ++i) {
      for (uint32_t f = batch.offsets[i]; f < batch.offsets[i + 1]; ++f)
        keys_.insert(batch.keys[f]);
      most_ = std::max<uint64_t>(most_, keys_.size());
      if (++seen_ < lines_) continue;
      seen_ = 0;
      ++windows_;
      keys_.clear();
    }
  }
  uint64_t most() const { return most_; }

 private:
  const uint64_t lines_;
  uint64_t seen_ = 0;
  int windows_ = 0;
  uint64_t most_ = 0;
  std::unordered_set<uint64_t> keys_;
};

}  // namespace

absl::StatusOr<DataMeasure> MeasureData(const JobSpec& spec) {
  DataAccess* access = DataAccess::Files();
  const auto files =
      ListFiles("spec.data.train", {spec.data().train().begin(), spec.data().train().end()});
  if (!files.ok()) return files.status();
  auto index = access->BuildIndex(spec, *files, nullptr);
  if (!index.ok()) return index.status();
  auto source = access->Open(spec, *index, index->shape());
  if (!source.ok()) return source.status();

  const TrainingSpec& training = spec.training();
  const uint64_t lanes = training.lanes(), batch_size = training.batch_size();
  const uint64_t workers = spec.replicas().workers();
  const uint64_t lanes_here = (lanes + workers - 1) / workers;
  WindowKeys batch_keys(batch_size), push_keys(batch_size * lanes_here),
      step_keys(batch_size * lanes);
  DistinctCounter all;
  DataMeasure measure;
  measure.lines = index->lines();
  measure.fields = index->shape().fields();
  measure.numeric = index->shape().numeric();
  uint64_t examples = 0, features = 0, bytes = 0;
  for (const InputTask& task : index->tasks()) bytes += task.bytes();
  Batch batch;
  for (uint64_t first = 0; first < measure.lines; first += kLinesAtOnce) {
    const absl::Status read = (*source)->ReadLines(first, kLinesAtOnce, &batch);
    if (!read.ok()) return read;
    examples += batch.size;
    features += batch.keys.size();
    for (uint64_t key : batch.keys) all.Add(key);
    for (WindowKeys* window : {&batch_keys, &push_keys, &step_keys}) window->Add(batch);
  }
  measure.line_bytes = measure.lines == 0 ? 0 : bytes / measure.lines;
  measure.features_per_example =
      examples == 0 ? 0 : static_cast<double>(features) / static_cast<double>(examples);
  measure.distinct_keys = all.Count();
  measure.keys_per_batch = batch_keys.most();
  measure.keys_per_push = push_keys.most();
  measure.keys_per_step = step_keys.most();
  return measure;
}

}  // namespace strata
