#include "tools/gpu/dlrm/bar.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"
#include "ops/parallel.h"
#include "proto/job/tables/model_tables.h"
#include "storage/row/layout.h"
#include "tools/gpu/dlrm/data.h"
#include "tools/gpu/dlrm/probe.h"
#include "tools/gpu/dlrm/servers.h"
#include "tools/gpu/dlrm/sizes.h"
#include "tools/gpu/dlrm/spec.h"
#include "tools/gpu/dlrm/training.h"
#include "worker/device/worker_device.h"

namespace strata::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;
using ops::gpu::MatmulPrecision;

constexpr double kZipf = 1.05;
constexpr double kTenth = 0.1;
constexpr double kOfAllInHbm = 0.75;  // what is wanted with a tenth of the rows in HBM

struct Case {
  const char* name;
  MatmulPrecision precision;
  double zipf;            // 0: all keys alike
  double examples_per_s;  // wanted
};

// Cases that one server is filled for.
struct Group {
  const char* name;
  double hbm_slots;  // of the rows
  std::vector<Case> cases;
};

std::vector<Group> Groups() {
  const Case zipf[] = {{"fp32", MatmulPrecision::kFp32, kZipf, 2.5e6},
                       {"TF32", MatmulPrecision::kTf32, kZipf, 7e6},
                       {"bf16", MatmulPrecision::kBf16, kZipf, 10e6}};
  Group all{"all rows in HBM", kSlotsForAllRows, {}};
  Group tenth{"10 % of rows in HBM", kTenth, {}};
  for (Case c : zipf) {
    all.cases.push_back(c);
    c.examples_per_s *= kOfAllInHbm;
    tenth.cases.push_back(c);
  }
  tenth.cases.push_back({"fp32", MatmulPrecision::kFp32, 0, 1e6});
  return {std::move(all), std::move(tenth)};
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// "pull 3.20, forward 1.10"; stages of less than 5 us are left out.
std::string StagesText(const std::array<double, kStages>& seconds) {
  std::string text;
  for (size_t i = 0; i < kStages; ++i) {
    if (seconds[i] < 5e-6) continue;
    absl::StrAppendFormat(&text, "%s%s %.2f", text.empty() ? "" : ", ", kStageNames[i],
                          seconds[i] * 1e3);
  }
  return text.empty() ? "nothing" : text;
}

class Runner {
 public:
  explicit Runner(const BarContext& context) : context_(context), begin_(Clock::now()) {}

  absl::Status Run() {
    if (absl::Status s = Prepare(); !s.ok()) return s;
    absl::Status status;
    const std::vector<Group> groups = Groups();
    for (const Group& group : groups) cases_left_ += group.cases.size();
    for (const Group& group : groups) {
      const size_t left_after = cases_left_ - group.cases.size();
      const absl::Status done = RunGroup(group, /*last=*/left_after == 0);
      status.Update(done);
      if (ops::gpu::IsDeviceLost(done)) break;
      cases_left_ = left_after;
    }
    return status;
  }

 private:
  absl::Status Prepare() {
    DlrmBytes free;
    size_t free_bytes = 0, total_bytes = 0;
    absl::Status status = context_.api->MemoryInfo(&free_bytes, &total_bytes);
    if (!status.ok()) return status;
    free.device = free_bytes;
    free.host = FreeHostBytes();
    auto sizes = FitDlrm(context_.sizes.dlrm, context_.sizes.mlp_widths, free, &sizes_note_);
    if (!sizes.ok()) return sizes.status();
    sizes_ = *sizes;
    spec_ = DlrmSpecOf(sizes_, context_.sizes.mlp_widths);
    const auto job = MakeDlrmJob(spec_);
    if (!job.ok()) return job.status();
    auto tables = DlrmTables(spec_, *job);
    if (!tables.ok()) return tables.status();
    tables_ = *std::move(tables);
    for (const TensorSpec& tensor : tables_.tables[1].tensors) {
      dense_rows_ += tensor.Rows(ModelTables::kDenseRowDim);
    }
    parallel_ = ops::MakeParallel(spec_.threads);
    for (const double zipf : {kZipf, 0.0}) {
      distinct_[zipf] = DistinctKeys(MakeDlrmBatch(DataOf(zipf, /*seed=*/1), 1));
    }
    device_.api = context_.api;
    device_.open_blas = context_.open_blas;
    device_.blas_bytes = ops::gpu::Blas::Options::kBytes;
    device_.uuid = context_.api->properties().uuid;
    status = Probe();
    return status.ok() ? ChooseServers() : status;
  }

  DlrmDataOptions DataOf(double zipf, uint64_t seed) const {
    DlrmDataOptions data;
    data.batch = sizes_.batch;
    data.fields = sizes_.fields;
    data.numeric = sizes_.numeric;
    data.field_rows = sizes_.field_rows;
    data.zipf = zipf;
    data.seed = seed;
    return data;
  }

  uint64_t DenseBytes() const { return dense_rows_ * ModelTables::kDenseRowDim * sizeof(float); }
  size_t row_bytes() const { return storage::RowLayout::For(tables_.tables[0]).row_bytes(); }

  // Before the tables are there: their memory is free.
  absl::Status Probe() {
    DlrmProbeOptions options;
    options.batch = sizes_.batch;
    options.bottom = {sizes_.numeric};
    options.bottom.insert(options.bottom.end(), sizes_.bottom.begin(), sizes_.bottom.end());
    options.bottom.push_back(sizes_.dim);
    options.top = context_.sizes.mlp_widths;
    options.table_rows = spec_.rows;
    options.dim = sizes_.dim;
    options.row_floats = static_cast<uint32_t>(row_bytes() / sizeof(float));
    for (const Group& group : Groups()) {
      for (const Case& c : group.cases) {
        const auto key = std::pair(c.precision, c.zipf);
        if (probes_.count(key) > 0) continue;
        options.precision = c.precision;
        options.rows = distinct_[c.zipf];
        const auto probe = ProbeDlrm(context_, options);
        if (!probe.ok()) return probe.status();
        probes_[key] = *probe;
      }
    }
    return absl::OkStatus();
  }

  // One, where values go by device memory. Asked of servers without rows.
  absl::Status ChooseServers() {
    DlrmSpec small = spec_;
    small.rows = 0;
    small.shards = 1;
    auto servers = Start(small, /*servers=*/1);
    if (!servers.ok()) return servers.status();
    auto offered = (*servers)->OfferedDevice();
    if (!offered.ok()) return offered.status();
    offered_ = !offered->empty() && *offered == device_.uuid;
    if (!offered_) {
      servers_ = ServersForMessages(sizes_, std::max(distinct_[0], distinct_[kZipf]), DenseBytes());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DlrmServers>> Start(DlrmSpec spec, uint32_t servers) const {
    spec.servers = servers;
    spec.shards = std::max(1u, spec.shards / servers);
    auto job = MakeDlrmJob(spec);
    if (!job.ok()) return job.status();
    DlrmServersOptions options;
    options.api = context_.api;
    options.job = *std::move(job);
    options.shape.set_fields(spec.fields);
    options.shape.set_numeric(spec.numeric);
    options.rows = spec.rows;
    options.servers = servers;
    options.threads = spec.threads;
    return DlrmServers::Start(options);
  }

  absl::Status RunGroup(const Group& group, bool last) {
    DlrmSpec spec = spec_;
    spec.hbm_slots = group.hbm_slots;
    const Clock::time_point filling = Clock::now();
    auto servers = Start(spec, servers_);
    if (!servers.ok()) return servers.status();
    fill_seconds_ = SecondsSince(filling);
    size_t left = cases_left_;
    for (const Case& c : group.cases) {
      const double reserved = last ? 0 : 1.2 * fill_seconds_;
      const double share = (0.9 * context_.part_seconds - SecondsSince(begin_) - reserved) /
                           static_cast<double>(left--);
      const absl::Status done = RunCase(group, c, share, spec, servers->get());
      if (!done.ok()) {
        return absl::Status(done.code(), absl::StrCat(NameOf(group, c), ": ", done.message()));
      }
    }
    return absl::OkStatus();
  }

  static std::string NameOf(const Group& group, const Case& c) {
    return absl::StrCat(c.name, ", ", c.zipf > 0 ? absl::StrCat("Zipf ", c.zipf) : "uniform keys",
                        ", ", group.name);
  }

  absl::Status RunCase(const Group& group, const Case& c, double seconds, DlrmSpec spec,
                       DlrmServers* servers) {
    spec.precision = c.precision;
    spec.servers = servers_;
    spec.shards = std::max(1u, spec.shards / servers_);
    auto job = MakeDlrmJob(spec);
    if (!job.ok()) return job.status();
    DlrmTrainingOptions options;
    options.servers = servers;
    options.device = &device_;
    options.parallel = parallel_.get();
    options.job = *std::move(job);
    options.session = ++session_;
    options.data = DataOf(c.zipf, options.session);
    options.warm_steps = sizes_.warm_steps;
    options.most_warm_steps = MostWarmSteps(sizes_, c.examples_per_s);
    options.warm_ms = sizes_.warm_ms;
    options.windows = sizes_.windows;
    options.window_steps = sizes_.window_steps;
    options.most_seconds = std::max(1.0, 0.8 * seconds);  // the rest: batches, the step's memory
    const auto trained = TrainDlrm(options);
    if (!trained.ok()) return trained.status();
    const DlrmCounters counters = servers->counters();
    if (counters.rows != spec.rows + dense_rows_ || counters.refused_rows > 0) {
      return absl::InternalError(
          absl::StrCat("the servers have ", counters.rows, " rows, and refused gradients of ",
                       counters.refused_rows, "; expected are ", spec.rows, " of features and ",
                       dense_rows_, " of the dense part"));
    }
    Tell(group, c, *trained, counters);
    return absl::OkStatus();
  }

  void Tell(const Group& group, const Case& c, const DlrmTraining& trained,
            const DlrmCounters& counters) {
    const auto distinct = static_cast<double>(distinct_[c.zipf]);
    const double values = distinct * sizes_.dim * sizeof(float);
    const DlrmProbe& probe = probes_[std::pair(c.precision, c.zipf)];
    BarLine line;
    line.bar = "dlrm";
    line.name = NameOf(group, c);
    line.path = "in-process";
    line.operations = sizes_.batch;
    line.operation = "examples";
    // Weights read and written, sums read, rows read and written.
    line.bytes = 3 * values + distinct * 2 * static_cast<double>(row_bytes());
    line.ms = trained.step_ms;
    line.probe_ms = probe.ms;
    line.copy_bytes_per_s = probe.copy_bytes_per_s;
    line.most_ms = sizes_.batch / c.examples_per_s * 1e3;
    const bool there = trained.rows_there > 0;
    line.note = absl::StrCat(there ? "values by device memory" : "values in messages",
                             there == offered_ ? "" : " (NOT as offered)");
    absl::StrAppendFormat(&line.note, ", ms a step: %s; ahead: %s", StagesText(trained.stages.path),
                          StagesText(trained.stages.ahead));
    absl::StrAppendFormat(
        &line.note,
        "; %.0f distinct keys, %.0f rows moved into HBM, which has %.1f %%; bare products %.3f ms; "
        "%.0f rows by device memory, %.3g B in messages; loss %.4f",
        distinct, trained.moved_up,
        100.0 * static_cast<double>(counters.hbm_rows) / static_cast<double>(spec_.rows),
        probe.products_ms, trained.rows_there, trained.message_bytes, trained.loss);
    absl::StrAppendFormat(&line.note,
                          "; %d x %d rows of %d, batch %d, %d shards of %d servers, filled in "
                          "%.1f s, %d steps to warm up, %d windows, %d steps%s",
                          sizes_.fields, sizes_.field_rows, sizes_.dim, sizes_.batch,
                          std::max(1u, sizes_.shards / servers_) * servers_, servers_,
                          fill_seconds_, trained.warm_steps, trained.windows, trained.steps,
                          trained.cut_short ? ", cut short" : "");
    if (!sizes_note_.empty()) line.note = absl::StrCat(sizes_note_, "; ", line.note);
    context_.tell(line);
  }

  const BarContext& context_;
  const Clock::time_point begin_;
  DlrmSizes sizes_;
  std::string sizes_note_;
  DlrmSpec spec_;
  ModelTables tables_;
  uint64_t dense_rows_ = 0;
  std::unique_ptr<ops::Parallel> parallel_;
  device::WorkerDevice device_;
  std::map<double, uint64_t> distinct_;  // keys of a step, by zipf
  std::map<std::pair<MatmulPrecision, double>, DlrmProbe> probes_;
  bool offered_ = false;  // values may go by device memory
  uint32_t servers_ = 1;
  size_t cases_left_ = 0;
  double fill_seconds_ = 0;
  uint64_t session_ = 1;
};

}  // namespace

absl::Status DlrmBar(const BarContext& context) {
  Runner runner(context);
  return runner.Run();
}

}  // namespace strata::gpu_check
