#include "tools/bench/job/memory_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "absl/status/status.h"

namespace strata::bench {
namespace {

// Distinct values of Criteo's 26 categorical fields.
constexpr std::array<uint64_t, 26> kCardinality = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};

// Big fields shrink so that all together have about `ids` values; small ones stay.
std::array<uint64_t, 26> Sizes(uint64_t ids) {
  constexpr uint64_t kBig = 100000;
  uint64_t small = 0, big = 0;
  for (uint64_t c : kCardinality) (c > kBig ? big : small) += c;
  const double scale = static_cast<double>(ids - std::min(ids, small)) / static_cast<double>(big);
  std::array<uint64_t, 26> sizes;
  for (size_t f = 0; f < sizes.size(); ++f) {
    const uint64_t c = kCardinality[f];
    sizes[f] =
        c > kBig ? std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(c) * scale)) : c;
  }
  return sizes;
}

std::vector<Batch> MakeBatches(const MemoryDataOptions& o) {
  std::mt19937_64 random(o.seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::gamma_distribution<double> gamma(0.5, 20.0);
  const auto sizes = Sizes(o.ids);
  std::vector<Batch> batches(o.batches);
  for (Batch& b : batches) {
    b.Clear();
    b.size = o.batch_size;
    b.numeric = 13;
    for (uint32_t e = 0; e < o.batch_size; ++e) {
      b.labels.push_back(uniform(random) < 0.256 ? 1.0f : 0.0f);
      for (int i = 0; i < 13; ++i) b.dense.push_back(std::log1p(static_cast<float>(gamma(random))));
      uint64_t first = 0;
      for (uint64_t n : sizes) {
        // The inverse of the continuous Zipf distribution.
        const double s = 1 - o.zipf;
        const double x =
            std::pow(uniform(random) * (std::pow(static_cast<double>(n + 1), s) - 1) + 1, 1 / s);
        const uint64_t rank = std::min<uint64_t>(n - 1, static_cast<uint64_t>(x) - 1);
        const uint64_t id = n > 1000 ? (rank * 2654435761ull + 12345) % n : rank;
        b.keys.push_back(first + id);
        first += n;
      }
      b.offsets.push_back(static_cast<uint32_t>(b.keys.size()));
    }
  }
  return batches;
}

class MemorySource : public BatchSource {
 public:
  MemorySource(const MemoryDataOptions& options, const std::vector<Batch>* batches)
      : options_(options),
        batches_(batches),
        every_id_steps_(options.every_id_first ? EveryIdSteps(options) : 0) {}
  absl::Status Read(Step step, LaneId lane, Batch* out) override {
    if (options_.before_read) options_.before_read(step);
    if (step.value <= every_id_steps_) {
      *out = batches_->front();
      uint64_t id = (step.value - 1) * out->keys.size();
      for (uint64_t& key : out->keys) key = id++ % options_.ids;
      return absl::OkStatus();
    }
    *out = (*batches_)[(step.value - 1 - every_id_steps_ + lane.value * 37) % batches_->size()];
    return absl::OkStatus();
  }
  absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) override {
    *out = (*batches_)[(task.value * 7 + window) % batches_->size()];
    return absl::OkStatus();
  }
  absl::Status ReadLines(uint64_t first, uint64_t, Batch* out) override {
    *out = (*batches_)[first / batches_->front().size % batches_->size()];
    return absl::OkStatus();
  }
  std::string first_bad_line() const override { return ""; }

 private:
  const MemoryDataOptions& options_;
  const std::vector<Batch>* batches_;
  const uint64_t every_id_steps_;
};

class MemoryData : public DataAccess {
 public:
  explicit MemoryData(const MemoryDataOptions& options)
      : options_(options), batches_(MakeBatches(options)) {}

  absl::StatusOr<InputIndex> BuildIndex(const JobSpec&, const std::vector<std::string>&,
                                        const IndexOptions&) override {
    InputIndex index;
    index.set_lines(options_.lines);
    constexpr uint32_t kTask = 1u << 20;
    InputFile* file = index.add_files();
    file->set_path("memory");
    for (uint64_t at = 0; at < options_.lines; at += kTask) {
      InputTask* task = index.add_tasks();
      task->set_first_line(at + 1);
      task->set_lines(static_cast<uint32_t>(std::min<uint64_t>(kTask, options_.lines - at)));
    }
    index.mutable_shape()->set_fields(26);
    index.mutable_shape()->set_numeric(13);
    return index;
  }

  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec&, const InputIndex&,
                                                    const DataShape&) override {
    return std::unique_ptr<BatchSource>(std::make_unique<MemorySource>(options_, &batches_));
  }

 private:
  const MemoryDataOptions options_;
  const std::vector<Batch> batches_;
};

}  // namespace

uint64_t EveryIdSteps(const MemoryDataOptions& options) {
  const uint64_t batch = uint64_t{options.batch_size} * kCardinality.size();
  return (options.ids + batch - 1) / batch;
}

std::unique_ptr<DataAccess> MakeMemoryData(const MemoryDataOptions& options) {
  return std::make_unique<MemoryData>(options);
}

}  // namespace strata::bench
