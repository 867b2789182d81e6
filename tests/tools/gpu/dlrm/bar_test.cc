// The dlrm bar on host threads at a tiny size: servers with all their rows, training on them, the
// lines that are told, and what happens when something fails. Times mean nothing here.
#include "tools/gpu/dlrm/bar.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "ops/parallel.h"
#include "tests/tools/gpu/bars/timed_api.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/dlrm/data.h"
#include "tools/gpu/dlrm/servers.h"
#include "tools/gpu/dlrm/sizes.h"
#include "tools/gpu/dlrm/spec.h"
#include "tools/gpu/dlrm/training.h"
#include "tools/gpu/report/bar_line.h"
#include "worker/device/worker_device.h"

namespace strata::gpu_check {
namespace {

// Its events are a millisecond apart; its allocation number `failing` fails, and kernels named
// `idle` do nothing.
class DlrmApi : public TimedApi {
 public:
  explicit DlrmApi(uint64_t failing = UINT64_MAX, const std::string& idle = "")
      : TimedApi(size_t{512} << 20, idle), failing_(failing) {}
  uint64_t allocations() const { return allocations_; }

 protected:
  absl::Status Enter(const char* call) override {
    const std::string name = call;
    if (name != "malloc" && name != "malloc host") return absl::OkStatus();
    if (allocations_++ != failing_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(call, ": injected"));
  }

 private:
  const uint64_t failing_;
  std::atomic<uint64_t> allocations_{0};
};

struct Run {
  absl::Status status;
  std::vector<BarLine> lines;
  uint64_t allocations = 0;
  size_t leaks = 0;
};

Run RunBar(const BarSizes& sizes = TinySizes(), uint64_t failing = UINT64_MAX,
           bool with_blas = true) {
  DlrmApi api(failing);
  Run run;
  {
    auto stream = ops::gpu::MakeStream(&api);
    REQUIRE(stream.ok());
    BarContext context;
    context.api = &api;
    context.stream = stream->get();
    context.sizes = sizes;
    context.part_seconds = 300;
    context.open_blas = [&](ops::gpu::Arena*) -> absl::StatusOr<std::unique_ptr<ops::gpu::Blas>> {
      if (!with_blas) return absl::NotFoundError("no library");
      return ops::gpu::MakeHostBlas(&api);
    };
    context.tell = [&run](const BarLine& line) { run.lines.push_back(line); };
    run.status = DlrmBar(context);
  }
  run.allocations = api.allocations();
  run.leaks = api.leaks();
  return run;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("dlrm: a line of each precision, with all rows in HBM and a tenth", "[gpu_check]") {
  const Run run = RunBar();
  INFO(run.status);
  REQUIRE(run.status.ok());
  CHECK(run.leaks == 0);
  REQUIRE(run.lines.size() == 7);
  std::set<std::string> names;
  for (const BarLine& line : run.lines) {
    INFO(line.name << ": " << line.note);
    CHECK(names.insert(line.name).second);
    CHECK(line.bar == "dlrm");
    CHECK(line.path == "in-process");
    CHECK(line.operations == 32);
    CHECK(line.operation == "examples");
    CHECK(line.ms > 0);
    CHECK(line.probe_ms == 1.0);
    CHECK(line.copy_bytes_per_s == Approx(2.0 * TinySizes().copy_bytes * 1e3));
    CHECK(line.bytes > 100 * (3 * 64 + 2 * 76));
    CHECK(line.bytes <= 832 * (3 * 64 + 2 * 76));
    CHECK(Has(line.note, "values "));
    CHECK_FALSE(Has(line.note, "NOT as offered"));
    CHECK(Has(line.note, "pull "));
    CHECK(Has(line.note, "26 x 200 rows of 16, batch 32, 2 shards of 1 servers"));
    CHECK(Has(line.note, " windows, 9 steps"));
    CHECK_FALSE(Has(line.note, "of the bar's size"));
    CHECK_FALSE(Has(line.note, "cut short"));
  }
  CHECK(run.lines[0].name == "fp32, Zipf 1.05, all rows in HBM");
  CHECK(run.lines[2].name == "bf16, Zipf 1.05, all rows in HBM");
  CHECK(run.lines[3].name == "fp32, Zipf 1.05, 10 % of rows in HBM");
  CHECK(run.lines[6].name == "fp32, uniform keys, 10 % of rows in HBM");
  const double wanted[] = {2.5e6, 7e6, 10e6, 0.75 * 2.5e6, 0.75 * 7e6, 0.75 * 10e6, 1e6};
  for (size_t i = 0; i < 7; ++i) CHECK(run.lines[i].most_ms == Approx(32 / wanted[i] * 1e3));
  CHECK(run.lines[6].bytes > run.lines[5].bytes);  // more distinct keys
  CHECK(Has(run.lines[0].note, " 0 rows moved into HBM, which has 100.0 %"));
  CHECK_FALSE(Has(run.lines[6].note, " 0 rows moved into HBM"));
}

TEST_CASE("dlrm: a larger batch on the host has the bar's fields and shards", "[gpu_check]") {
  const Run run = RunBar(BusyHostSizes(64));
  REQUIRE(run.status.ok());
  REQUIRE(run.lines.size() == 7);
  for (const BarLine& line : run.lines) {
    CHECK(line.operations == 64);
    CHECK(Has(line.note, "26 x 320 rows of 8, batch 64, 16 shards of 1 servers"));
  }
}

TEST_CASE("dlrm: without a library of products there is nothing to measure", "[gpu_check]") {
  const Run run = RunBar(TinySizes(), UINT64_MAX, /*with_blas=*/false);
  CHECK(absl::IsNotFound(run.status));
  CHECK(run.lines.empty());
  CHECK(run.leaks == 0);
}

TEST_CASE("dlrm: memory that is not there is told, and nothing is kept", "[gpu_check]") {
  BarSizes sizes = TinySizes();
  sizes.dlrm.windows = 1;
  sizes.dlrm.window_steps = 1;
  sizes.dlrm.warm_steps = 0;
  const Run whole = RunBar(sizes);
  REQUIRE(whole.status.ok());
  REQUIRE(whole.allocations > 20);
  int failed = 0;
  for (uint64_t failing = 0; failing < whole.allocations; failing += 3) {
    const Run run = RunBar(sizes, failing);
    INFO("allocation " << failing << " of " << whole.allocations << ": " << run.status);
    CHECK(run.leaks == 0);
    if (run.status.ok()) {  // of a call that is repeated
      CHECK(run.lines.size() == 7);
      continue;
    }
    ++failed;
    CHECK(Has(std::string(run.status.message()), "injected"));
    CHECK(run.lines.size() < 7);
  }
  CHECK(failed >= 8);
  sizes.dlrm.field_rows = uint64_t{1} << 40;
  const Run none = RunBar(sizes);
  CHECK(absl::IsResourceExhausted(none.status));
  CHECK(Has(std::string(none.status.message()), " are free"));
}

// Servers and what trains on them.
struct Bench {
  explicit Bench(const std::string& idle = "", double hbm_slots = kSlotsForAllRows)
      : api(UINT64_MAX, idle) {
    const BarSizes sizes = TinySizes();
    spec = DlrmSpecOf(sizes.dlrm, sizes.mlp_widths);
    spec.hbm_slots = hbm_slots;
    device.api = &api;
    device.open_blas = [this](ops::gpu::Arena*) { return ops::gpu::MakeHostBlas(&api); };
    device.uuid = api.properties().uuid;
    data.batch = spec.batch;
    data.fields = spec.fields;
    data.numeric = spec.numeric;
    data.field_rows = sizes.dlrm.field_rows;
    data.zipf = 1.05;
  }

  void Start(uint32_t servers_count = 1) {
    spec.servers = servers_count;
    DlrmServersOptions options;
    options.api = &api;
    auto job = MakeDlrmJob(spec);
    REQUIRE(job.ok());
    options.job = *job;
    options.shape.set_fields(spec.fields);
    options.shape.set_numeric(spec.numeric);
    options.rows = spec.rows;
    options.servers = servers_count;
    options.threads = 2;
    auto started = DlrmServers::Start(options);
    INFO(started.status());
    REQUIRE(started.ok());
    servers = *std::move(started);
  }

  absl::StatusOr<DlrmTraining> Train(uint64_t session, double most_seconds = 300,
                                     uint32_t warm_steps = 1) {
    DlrmTrainingOptions options;
    options.servers = servers.get();
    options.device = &device;
    options.parallel = parallel.get();
    options.job = *MakeDlrmJob(spec);
    options.data = data;
    options.session = session;
    options.warm_steps = warm_steps;
    options.most_warm_steps = most_warm_steps;
    options.warm_ms = warm_ms;
    options.windows = 2;
    options.window_steps = 2;
    options.most_seconds = most_seconds;
    return TrainDlrm(options);
  }

  uint64_t DenseRows() const {
    uint64_t rows = 0;
    const auto tables = DlrmTables(spec, *MakeDlrmJob(spec));
    for (const TensorSpec& t : tables->tables[1].tensors) rows += t.Rows(256);
    return rows;
  }

  uint32_t most_warm_steps = 0;
  double warm_ms = 0;
  DlrmApi api;
  DlrmSpec spec;
  device::WorkerDevice device;
  DlrmDataOptions data;
  std::unique_ptr<ops::Parallel> parallel = ops::MakeParallel(2);
  std::unique_ptr<DlrmServers> servers;
};

TEST_CASE("servers begin with all rows, as many of them in HBM as fit", "[gpu_check]") {
  for (const double slots : {kSlotsForAllRows, 0.1}) {
    Bench bench("", slots);
    bench.Start();
    const DlrmCounters counters = bench.servers->counters();
    CHECK(counters.rows == 26 * 200);
    CHECK(counters.clock == 0);
    if (slots > 1) {
      CHECK(counters.hbm_rows > 5200 * 0.99);
    } else {
      CHECK(counters.hbm_rows >= 2 * 256 * 0.95);
      CHECK(counters.hbm_rows <= 2 * 320);
      CHECK(counters.hbm_evicted > 4000);
    }
    const auto offered = bench.servers->OfferedDevice();
    REQUIRE(offered.ok());
    CHECK((offered->empty() || *offered == "host"));
  }
}

TEST_CASE("training goes on where the servers are, step by step", "[gpu_check]") {
  Bench bench;
  bench.Start();
  for (uint64_t session : {2, 3}) {
    const auto trained = bench.Train(session);
    INFO(trained.status());
    REQUIRE(trained.ok());
    CHECK(trained->steps == 8);  // 1 to warm up, 2 x 3 of windows, 1 more
    CHECK(trained->windows >= 1);
    CHECK(trained->windows <= 2);
    CHECK(trained->step_ms > 0);
    CHECK(trained->message_bytes > 0);
    CHECK(trained->moved_up == 0);
    CHECK(trained->loss > 0.3);
    CHECK(trained->loss < 1.0);
    CHECK_FALSE(trained->cut_short);
    double path = 0;
    for (const double seconds : trained->stages.path) path += seconds;
    CHECK(path > 0);
    const DlrmCounters counters = bench.servers->counters();
    CHECK(counters.clock == 8 * (session - 1));
    CHECK(counters.rows == 5200 + bench.DenseRows());
    CHECK(counters.refused_rows == 0);
  }
}

TEST_CASE("windows begin when steps have taken long enough, or there are no more", "[gpu_check]") {
  Bench bench;
  bench.Start();
  bench.most_warm_steps = 20;
  bench.warm_ms = 1e9;
  // A busy machine may take all steps before anybody looks: then nothing was warmed.
  uint64_t session = 2;
  auto trained = bench.Train(session);
  while (trained.ok() && trained->warm_steps == 0 && session < 50) {
    trained = bench.Train(++session);
  }
  REQUIRE(trained.ok());
  CHECK(trained->steps == 27);  // 20 to warm up, 2 x 3 of windows, 1 more
  CHECK(trained->warm_steps >= 20);
  bench.warm_ms = 0;
  trained = bench.Train(++session);
  REQUIRE(trained.ok());
  CHECK(trained->steps == 27);
  CHECK(trained->warm_steps < 20);
}

TEST_CASE("several servers share the rows", "[gpu_check]") {
  Bench bench;
  bench.spec.shards = 1;
  bench.Start(2);
  CHECK(bench.servers->counters().rows == 5200);
  const auto trained = bench.Train(2);
  INFO(trained.status());
  REQUIRE(trained.ok());
  CHECK(bench.servers->counters().clock == 8);
  CHECK(bench.servers->counters().rows == 5200 + bench.DenseRows());
}

TEST_CASE("a training that takes too long is told", "[gpu_check]") {
  Bench bench;
  bench.Start();
  const auto trained = bench.Train(2, 0, 1000);
  CHECK(absl::IsDeadlineExceeded(trained.status()));
  CHECK(Has(std::string(trained.status().message()), "no window of 2 steps"));
  const uint64_t clock = bench.servers->counters().clock;
  const auto again = bench.Train(3);  // and does not stand in the way of the next
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(again->steps == 8);
  CHECK(bench.servers->counters().clock >= clock + 8);
}

}  // namespace
}  // namespace strata::gpu_check
