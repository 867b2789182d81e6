#include "tools/bench/job/preparsed_data.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "worker/data/index/job_epoch_plan.h"

namespace strata::bench {
namespace {

class PreparsedSource : public BatchSource {
 public:
  // batches: (steps of an epoch, lanes)
  PreparsedSource(std::vector<Batch> batches, uint32_t lanes)
      : batches_(std::move(batches)), lanes_(lanes) {}

  absl::Status Read(Step step, LaneId lane, Batch* out) override {
    const uint64_t steps = batches_.size() / lanes_;
    *out = batches_[(step.value - 1) % steps * lanes_ + lane.value];
    return absl::OkStatus();
  }
  absl::Status ReadWindow(TaskId, uint64_t, Batch*) override { return BspOnly(); }
  absl::Status ReadLines(uint64_t, uint64_t, Batch*) override { return BspOnly(); }
  std::string first_bad_line() const override { return ""; }

 private:
  static absl::Status BspOnly() {
    return absl::UnimplementedError("batches of synchronous training only");
  }

  const std::vector<Batch> batches_;
  const uint32_t lanes_;
};

class PreparsedData : public DataAccess {
 public:
  absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec, const std::vector<std::string>& files,
                                        const IndexOptions& options) override {
    return Files()->BuildIndex(spec, files, options);
  }

  absl::StatusOr<std::unique_ptr<BatchSource>> Open(const JobSpec& spec, const InputIndex& index,
                                                    const DataShape& shape) override {
    auto source = Files()->Open(spec, index, shape);
    if (!source.ok()) return source.status();
    auto plan = MakeEpochPlan(spec, index);
    if (!plan.ok()) return plan.status();
    const uint32_t lanes = plan->options().lanes;
    std::vector<Batch> batches(plan->StepsPerEpoch() * lanes);
    for (size_t i = 0; i < batches.size(); ++i) {
      const LaneId lane(static_cast<uint32_t>(i % lanes));
      absl::Status s = (*source)->Read(Step(1 + i / lanes), lane, &batches[i]);
      if (!s.ok()) return s;
    }
    return std::unique_ptr<BatchSource>(
        std::make_unique<PreparsedSource>(std::move(batches), lanes));
  }
};

}  // namespace

std::unique_ptr<DataAccess> MakePreparsedData() { return std::make_unique<PreparsedData>(); }

}  // namespace strata::bench
