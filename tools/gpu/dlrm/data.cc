#include "tools/gpu/dlrm/data.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"

namespace strata::gpu_check {
namespace {

constexpr double kPositives = 0.25;  // share of labels that are 1
constexpr uint32_t kTaskLines = 1u << 20;

// Uniform in [0, 1), the same everywhere.
class Uniform {
 public:
  Uniform(uint64_t seed, uint64_t step) {
    std::seed_seq seeds = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                           static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)};
    random_.seed(seeds);
  }
  double operator()() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 random_;
};

// Values of a field.
class Values {
 public:
  explicit Values(const DlrmDataOptions& o) : rows_(o.field_rows) {
    if (o.zipf <= 0) return;
    power_ = 1 - o.zipf;
    span_ = std::pow(static_cast<double>(rows_) + 1, power_) - 1;
  }

  uint64_t operator()(Uniform& uniform) const {
    const double u = uniform();
    // The inverse of the continuous distribution on [1, rows + 1).
    const double x =
        power_ == 0 ? u * static_cast<double>(rows_) : std::pow(u * span_ + 1, 1 / power_) - 1;
    return std::min(rows_ - 1, static_cast<uint64_t>(std::max(x, 0.0)));
  }

 private:
  const uint64_t rows_;
  double power_ = 0;  // 0: all values alike
  double span_ = 0;
};

class DlrmSource : public BatchSource {
 public:
  DlrmSource(const DlrmDataOptions& options, uint64_t first, std::vector<Batch> batches)
      : options_(options),
        first_(first),
        batches_(std::move(batches)),
        given_(batches_.size(), false) {}

  absl::Status Read(Step step, LaneId, Batch* out) override {
    {
      absl::MutexLock lock(&mu_);
      const uint64_t i = step.value - first_;
      if (step.value >= first_ && i < batches_.size() && !given_[i]) {
        given_[i] = true;
        *out = std::move(batches_[i]);
        return absl::OkStatus();
      }
    }
    *out = MakeDlrmBatch(options_, step.value);
    return absl::OkStatus();
  }
  absl::Status ReadWindow(TaskId, uint64_t, Batch*) override { return BspOnly(); }
  absl::Status ReadLines(uint64_t, uint64_t, Batch*) override { return BspOnly(); }
  std::string first_bad_line() const override { return ""; }

 private:
  static absl::Status BspOnly() {
    return absl::UnimplementedError("batches of synchronous training only");
  }

  const DlrmDataOptions options_;
  const uint64_t first_;
  absl::Mutex mu_;
  std::vector<Batch> batches_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> given_ ABSL_GUARDED_BY(mu_);
};

class DlrmData : public DataAccess {
 public:
  DlrmData(const DlrmDataOptions& options, uint64_t first, std::vector<Batch> batches)
      : options_(options), first_(first), batches_(std::move(batches)) {}

  absl::StatusOr<InputIndex> BuildIndex(const JobSpec&, const std::vector<std::string>&,
                                        const IndexOptions&) override {
    return DlrmIndex(options_, (first_ + batches_.size() - 1) * options_.batch);
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec&, const InputIndex&,
                                                    const DataShape&) override {
    return std::unique_ptr<BatchSource>(
        std::make_unique<DlrmSource>(options_, first_, std::exchange(batches_, {})));
  }

 private:
  const DlrmDataOptions options_;
  const uint64_t first_;
  std::vector<Batch> batches_;  // until the first source has them
};

}  // namespace

Batch MakeDlrmBatch(const DlrmDataOptions& o, uint64_t step) {
  Uniform uniform(o.seed, step);
  const Values values(o);
  Batch batch;
  batch.Clear();
  batch.size = o.batch;
  batch.numeric = o.numeric;
  batch.labels.reserve(o.batch);
  batch.dense.reserve(size_t{o.batch} * o.numeric);
  batch.keys.reserve(size_t{o.batch} * o.fields);
  batch.offsets.reserve(size_t{o.batch} + 1);
  for (uint32_t e = 0; e < o.batch; ++e) {
    batch.labels.push_back(uniform() < kPositives ? 1.0f : 0.0f);
    for (uint32_t i = 0; i < o.numeric; ++i) batch.dense.push_back(static_cast<float>(uniform()));
    for (uint32_t f = 0; f < o.fields; ++f) {
      batch.keys.push_back(f * o.field_rows + values(uniform));
    }
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
  }
  return batch;
}

uint64_t DistinctKeys(const Batch& batch) {
  std::vector<uint64_t> keys = batch.keys;
  std::sort(keys.begin(), keys.end());
  return static_cast<uint64_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
}

InputIndex DlrmIndex(const DlrmDataOptions& options, uint64_t examples) {
  InputIndex index;
  index.set_lines(examples);
  index.add_files()->set_path("memory");
  for (uint64_t at = 0; at < examples; at += kTaskLines) {
    InputTask* task = index.add_tasks();
    task->set_first_line(at + 1);
    task->set_lines(static_cast<uint32_t>(std::min<uint64_t>(kTaskLines, examples - at)));
  }
  index.mutable_shape()->set_fields(options.fields);
  index.mutable_shape()->set_numeric(options.numeric);
  return index;
}

std::unique_ptr<DataAccess> MakeDlrmData(const DlrmDataOptions& options, uint64_t first,
                                         uint32_t count, ops::Parallel* parallel) {
  std::vector<Batch> batches(count);
  parallel->For(count, [&](size_t i) { batches[i] = MakeDlrmBatch(options, first + i); });
  return std::make_unique<DlrmData>(options, first, std::move(batches));
}

}  // namespace strata::gpu_check
