#include "tools/bench/checkpoint/replay_load.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/base/timer.h"
#include "proto/strata/control.pb.h"
#include "server/job/job_folder.h"
#include "server/job/opening.h"
#include "server/shard/shard.h"
#include "server/table/sums.h"
#include "storage/log/update_log.h"

namespace strata::bench {
namespace {

constexpr size_t kAllRows = 1'000'000;
constexpr size_t kWindowRows = 100'000;
constexpr size_t kWindows = 36;
constexpr uint32_t kFloats = 16;

absl::StatusOr<server::JobPlan> MakePlan() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("bench-replay");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train("memory");
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->set_embedding_dim(kFloats - 1);  // and one weight
  spec.mutable_optimizer()->mutable_sparse()->set_type("sgd");
  spec.mutable_training()->set_mode("async");
  spec.mutable_training()->set_lanes(1);
  spec.mutable_storage()->set_durability("logged");
  spec.mutable_storage()->set_log_bytes_per_server("4GiB");
  if (absl::Status s = ResolveJob(job); !s.ok()) return s;
  ServerJobDirective directive;
  directive.set_job(1);
  directive.set_cluster_id(ClusterId{0, 1}.text());
  directive.set_job_uid(JobUid{0, 1}.text());
  directive.set_generation(1);
  directive.set_map_epoch(1);
  directive.mutable_shape()->set_fields(1);
  directive.add_shards()->set_last_partition(job.spec().storage().partitions() - 1);
  *directive.mutable_spec() = std::move(job);
  return server::PlanJob(directive);
}

// A window's rows: positions that ascend, and a gradient for each.
struct Window {
  std::vector<Position> positions;
  std::vector<float> values;
};

std::shared_ptr<Window> Draw(const std::vector<Position>& all, std::mt19937_64& random) {
  auto window = std::make_shared<Window>();
  const size_t stride = kAllRows / kWindowRows;
  for (size_t i = 0; i < kWindowRows; ++i) {
    window->positions.push_back(all[i * stride + random() % stride]);
  }
  for (size_t i = 0; i < kWindowRows * kFloats; ++i) {
    window->values.push_back(1e-4f * static_cast<float>(i % 97));
  }
  return window;
}

}  // namespace

absl::StatusOr<ReplayLoad> ReplayLoad::Write(const std::string& folder) {
  auto plan = MakePlan();
  if (!plan.ok()) return plan.status();
  ReplayLoad load(*std::move(plan), folder);
  auto opened = server::OpenJob(load.plan_, folder, Timer::Real());
  if (!opened.ok()) return opened.status();
  std::mt19937_64 random(5);
  std::vector<Position> all;
  for (size_t i = 0; i < kAllRows; ++i) all.emplace_back(random());
  std::sort(all.begin(), all.end());
  for (size_t w = 0; w < kWindows; ++w) {
    const std::shared_ptr<Window> window = Draw(all, random);
    server::ShardUpdate update;
    update.examples = 1;
    update.tables.resize(load.plan_.tables.size());
    update.tables[0] = {window->positions, window->values.data(), window};
    auto applied = opened->shards[0]->ApplyWindow(TaskId(0), w, LaneId(0), std::move(update));
    if (!applied.ok()) return applied.status();
  }
  load.log_bytes_ = opened->log->stats().bytes;
  load.plan_.was_open = true;
  return load;
}

absl::StatusOr<double> ReplayLoad::Recover() const {
  const absl::Time from = absl::Now();
  auto opened = server::OpenJob(plan_, folder_, Timer::Real());
  if (!opened.ok()) return opened.status();
  if (opened->replayed_records != kWindows) {
    return absl::InternalError(absl::StrCat(opened->replayed_records, " windows were replayed"));
  }
  return absl::ToDoubleSeconds(absl::Now() - from);
}

absl::StatusOr<double> ReplayLoad::Read() const {
  const absl::Time from = absl::Now();
  auto log = storage::UpdateLog::Open(
      {.directory = server::GenerationFolder(folder_, plan_.identity, plan_.generation) + "/log",
       .owner = {plan_.identity, plan_.generation}});
  if (!log.ok()) return log.status();
  absl::Status s =
      (*log)->Replay(0, [](const storage::LogRecordView&) { return absl::OkStatus(); });
  if (!s.ok()) return s;
  return absl::ToDoubleSeconds(absl::Now() - from);
}

}  // namespace strata::bench
