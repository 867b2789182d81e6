// Every bar on host threads at a tiny size: which lines it tells, what it counts, that what it
// measures works, and that it gives everything back. Times mean nothing here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "tests/tools/gpu/bars/host_blas.h"
#include "tests/tools/gpu/bars/timed_api.h"
#include "tools/gpu/bars/apply_bar.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/bars/coalesce_bar.h"
#include "tools/gpu/bars/gather_bar.h"
#include "tools/gpu/bars/mlp_bar.h"
#include "tools/gpu/report/bar_line.h"
#include "tools/gpu/table/find_bar.h"
#include "tools/gpu/table/insert_bar.h"
#include "tools/gpu/table/memory.h"

namespace strata::gpu_check {
namespace {

// Its events are a millisecond apart; its call number `failing` fails, and kernels named `idle` do
// nothing.
class BarApi : public TimedApi {
 public:
  explicit BarApi(uint64_t failing = UINT64_MAX, const std::string& idle = "",
                  size_t cache_bytes = 0)
      : TimedApi(size_t{256} << 20, idle),
        failing_(failing),
        properties_(With(HostApi::properties(), cache_bytes)) {}
  uint64_t calls() const { return calls_; }
  const ops::gpu::DeviceProperties& properties() const override { return properties_; }

 protected:
  absl::Status Enter(const char* call) override {
    if (calls_++ != failing_) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(call, ": injected"));
  }

 private:
  static ops::gpu::DeviceProperties With(ops::gpu::DeviceProperties p, size_t cache_bytes) {
    p.l2_bytes = cache_bytes;
    return p;
  }
  const uint64_t failing_;
  const ops::gpu::DeviceProperties properties_;
  uint64_t calls_ = 0;
};

struct Run {
  absl::Status status;
  std::vector<BarLine> lines;
  uint64_t calls = 0;
  size_t leaks = 0;
};

Run RunBar(absl::Status (*bar)(const BarContext&), const BarSizes& sizes = TinySizes(),
           uint64_t failing = UINT64_MAX, const OpenBlas& open_blas = nullptr,
           const std::string& idle = "", size_t cache_bytes = 0) {
  BarApi api(failing, idle, cache_bytes);
  Run run;
  {
    auto stream = ops::gpu::MakeStream(&api);
    if (stream.ok()) {
      BarContext context;
      context.api = &api;
      context.stream = stream->get();
      context.sizes = sizes;
      context.open_blas = open_blas;
      context.tell = [&run](const BarLine& line) { run.lines.push_back(line); };
      run.status = bar(context);
    } else {
      run.status = stream.status();
    }
  }
  run.calls = api.calls();
  run.leaks = api.leaks();
  return run;
}

// What holds for each line of each bar: 1 ms a call, a copy of 64 KiB in 1 ms.
void CheckLines(const Run& run, const std::string& bar) {
  INFO(run.status.ToString());
  REQUIRE(run.status.ok());
  CHECK(run.leaks == 0);
  std::set<std::string> names;
  for (const BarLine& line : run.lines) {
    INFO(line.name);
    CHECK(line.bar == bar);
    CHECK(line.path == "device");
    CHECK(names.insert(line.name).second);
    CHECK(line.operations > 0);
    CHECK_FALSE(line.operation.empty());
    CHECK(line.ms == 1.0);
    CHECK(line.probe_ms == 1.0);
    CHECK(line.copy_bytes_per_s == Approx(2.0 * TinySizes().copy_bytes * 1e3));
    CHECK(line.least_of_copy + line.least_of_probe + line.most_ms + line.most_change > 0);
    CHECK(line.note.find("of the bar's size") == std::string::npos);
  }
}

// Every call of the bar in turn fails: it ends with that error, and nothing is left behind.
void CheckFailures(absl::Status (*bar)(const BarContext&), const OpenBlas& open_blas = nullptr) {
  BarSizes sizes = TinySizes();
  sizes.table_bytes = 1 << 14;
  sizes.batch_bytes = sizes.copy_bytes = 1 << 12;
  sizes.keys = 50;
  sizes.repetitions = 1;
  const uint64_t calls = RunBar(bar, sizes, UINT64_MAX, open_blas).calls;
  REQUIRE(calls > 20);
  for (uint64_t failing = 0; failing < calls; ++failing) {
    const Run run = RunBar(bar, sizes, failing, open_blas);
    INFO("call " << failing << " of " << calls);
    // What destroys something cannot tell.
    if (!run.status.ok()) CHECK(run.status.message().find("injected") != std::string::npos);
    CHECK(run.leaks == 0);
  }
}

TEST_CASE("gather and pool: rows of three lengths, one and four a bag", "[gpu_check]") {
  const Run run = RunBar(&GatherBar);
  CheckLines(run, "gather");
  REQUIRE(run.lines.size() == 6);
  CHECK(run.lines[0].name == "rows of 256 B, 1 a bag");
  CHECK(run.lines[0].operations == 512);
  CHECK(run.lines[0].bytes == 512 * (256 + 4 + 256));
  CHECK(run.lines[0].least_of_copy == 0.80);
  CHECK(run.lines[0].least_of_probe == 0.95);
  CHECK(run.lines[5].name == "rows of 64 B, 4 a bag");
  CHECK(run.lines[5].operations == 2048);
  CHECK(run.lines[5].bytes == 2048 * (64 + 4) + 512 * 64);
  CHECK(run.lines[5].least_of_copy == 0.55);
  CheckFailures(&GatherBar);
}

TEST_CASE("apply: every optimizer, long rows and short", "[gpu_check]") {
  const Run run = RunBar(&ApplyBar);
  CheckLines(run, "apply");
  std::map<std::string, BarLine> lines;
  for (const BarLine& line : run.lines) lines[line.name] = line;
  REQUIRE(lines.count("adagrad, dim 32, row + state 256 B") == 1);
  const BarLine& longer = lines["adagrad, dim 32, row + state 256 B"];
  CHECK(longer.operations == 1024);  // sums of 128 KiB
  CHECK(longer.bytes == 1024 * (4 + 128 + 2 * 256));
  CHECK(longer.least_of_copy == 0.75);
  REQUIRE(lines.count("rowwise_adagrad, dim 16, row + state 68 B") == 1);
  CHECK(lines["rowwise_adagrad, dim 16, row + state 68 B"].least_of_copy == 0.55);
  for (const char* name : {"sgd, dim 64, row + state 256 B", "adam, dim 64, row + state 768 B",
                           "ftrl, dim 64, row + state 768 B"}) {
    INFO(name);
    CHECK(lines.count(name) == 1);
  }
  CheckFailures(&ApplyBar);
}

TEST_CASE("coalesce: duplicates, and one key that has half of the batch", "[gpu_check]") {
  const Run run = RunBar(&CoalesceBar);
  CheckLines(run, "coalesce");
  REQUIRE(run.lines.size() == 2);
  CHECK(run.lines[0].name == "3000 keys, 30 % duplicates, dim 64");
  CHECK(run.lines[0].bytes == 3000 * 8 + 3000 * 256 + 2100 * 256);
  CHECK(run.lines[0].most_ms == 0.5);
  CHECK(run.lines[1].bytes == 3000 * 8 + 3000 * 256 + 1501 * 256);
  CHECK(run.lines[1].most_ms == 1.0);
  CheckFailures(&CoalesceBar);

  const std::vector<uint64_t> keys = DuplicatedKeys(1000, 700, 3), half = HalfOneKey(1000, 3);
  CHECK(std::set<uint64_t>(keys.begin(), keys.end()).size() == 700);
  CHECK(std::set<uint64_t>(half.begin(), half.end()).size() == 501);
  CHECK_FALSE(std::is_sorted(half.begin(), half.end()));
  std::map<uint64_t, int> counts;
  for (const uint64_t key : half) ++counts[key];
  CHECK(std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second == 500);
}

TEST_CASE("mlp: products are checked, then measured beside bare ones", "[gpu_check]") {
  const OpenBlas open = [](ops::gpu::Arena*) { return std::make_unique<testing::HostBlas>(); };
  const Run run = RunBar(&MlpBar, TinySizes(), UINT64_MAX, open);
  CheckLines(run, "mlp");
  REQUIRE(run.lines.size() == 3);
  CHECK(run.lines[0].name == "12-16-8-1, batch 8, fp32");
  CHECK(run.lines[2].name == "12-16-8-1, batch 8, bf16");
  CHECK(run.lines[0].operations == 6 * 8 * (12 * 16 + 16 * 8 + 8 * 1));
  CHECK(run.lines[0].operation == "flop");
  CHECK(run.lines[0].bytes == 0);
  CHECK(run.lines[0].least_of_probe == 0.95);
  CHECK(run.lines[1].least_of_probe == 0.80);
  CHECK(run.lines[2].least_of_probe == 0.75);
  CHECK(run.lines[2].note == "cuBLASLt 0.0.0, products checked, outputs padded to 8");
  CheckFailures(&MlpBar, open);
}

TEST_CASE("mlp: a wrong product is found, and other precisions are still measured", "[gpu_check]") {
  using ops::gpu::MatmulPrecision;
  for (const auto& [precision, error, found] :
       {std::tuple{MatmulPrecision::kFp32, 0.01f, true},
        std::tuple{MatmulPrecision::kTf32, 0.05f, true},
        std::tuple{MatmulPrecision::kTf32, 1e-6f, false},
        std::tuple{MatmulPrecision::kBf16, 0.1f, true},
        std::tuple{MatmulPrecision::kFp32, std::numeric_limits<float>::quiet_NaN(), true}}) {
    const OpenBlas open = [wrong = precision, by = error](ops::gpu::Arena*) {
      auto blas = std::make_unique<testing::HostBlas>();
      blas->error = by;
      blas->wrong = wrong;
      return blas;
    };
    INFO("precision " << int(precision) << ", error " << error);
    const Run run = RunBar(&MlpBar, TinySizes(), UINT64_MAX, open);
    CHECK(run.status.ok() != found);
    CHECK(run.lines.size() == (found ? 2 : 3));
    if (found) CHECK(run.status.message().find(", result: element 1 is ") != std::string::npos);
  }
  const Run none = RunBar(&MlpBar, TinySizes(), UINT64_MAX,
                          [](ops::gpu::Arena*) -> absl::StatusOr<std::unique_ptr<ops::gpu::Blas>> {
                            return absl::NotFoundError("no library");
                          });
  CHECK(absl::IsNotFound(none.status));
}

TEST_CASE("find: short rows and long, half of the slots taken and all", "[gpu_check]") {
  const Run run = RunBar(&FindBar);
  CheckLines(run, "find");
  REQUIRE(run.lines.size() == 4);
  CHECK(run.lines[0].name == "all hits, dim 8, 50 % of slots taken");
  CHECK(run.lines[0].operations == 200);
  CHECK(run.lines[0].bytes == 200 * (8 + 128 + 2 * 32));
  CHECK(run.lines[0].most_ms == Approx(200 / 5e9 * 1e3));
  CHECK(run.lines[0].most_change == 0);
  CHECK(run.lines[1].name == "all hits, dim 8, 100 % of slots taken");
  CHECK(run.lines[1].most_ms == run.lines[0].most_ms);
  CHECK(run.lines[3].name == "all hits, dim 64, 100 % of slots taken");
  CHECK(run.lines[3].bytes == 200 * 648);
  for (const size_t full : {1, 3}) {
    CHECK(run.lines[full].most_change == 0.05);
    CHECK(run.lines[full].reference_ms == run.lines[full - 1].ms);
    CHECK(run.lines[full].least_of_copy == run.lines[full - 1].least_of_copy);
  }
  CHECK(run.lines[2].least_of_copy == 0.75);
  CHECK(run.lines[2].most_ms == 0);
  CHECK(run.lines[2].reference_ms == 0);
  CheckFailures(&FindBar);
}

TEST_CASE("find: sets of keys take turns where the last-level cache would keep one",
          "[gpu_check]") {
  CHECK(KeySets(0, 1e6) == 1);
  CHECK(KeySets(1000, 4000) == 1);
  CHECK(KeySets(1001, 4000) == 2);
  CHECK(KeySets(size_t{1} << 40, 4000) == kMostKeySets);
  // 200 keys of 8 floats touch 25,600 B, of 64 floats 70,400 B.
  const Run run =
      RunBar(&FindBar, TinySizes(), UINT64_MAX, nullptr, /*idle=*/"", /*cache_bytes=*/16'000);
  CheckLines(run, "find");
  REQUIRE(run.lines.size() == 4);
  const char* const sets[] = {"3", "3", "1", "1"};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(run.lines[i].note == std::string("sets of keys that take turns: ") + sets[i]);
    CHECK(run.lines[i].operations == 200);
  }
}

TEST_CASE("find-or-insert: every key pushes out a dirty row", "[gpu_check]") {
  const Run run = RunBar(&FindOrInsertBar);
  CheckLines(run, "find-or-insert");
  REQUIRE(run.lines.size() == 3);
  CHECK(run.lines[0].name == "all misses, dim 64, lru");
  CHECK(run.lines[0].operations == 200);
  CHECK(run.lines[0].bytes == 200 * (16 + 16 + 5 * 64 + 5 + 16 + 2 * 256));
  CHECK(run.lines[1].name == "all misses, dim 64, lrfu");
  CHECK(run.lines[1].bytes == run.lines[0].bytes + 200 * (2 * 32 + 2 * 4));
  CHECK(run.lines[2].name == "all misses, dim 64, lru, new rows moved too");
  CHECK(run.lines[2].bytes == run.lines[0].bytes + 200 * 2 * 256);
  for (const BarLine& line : run.lines) CHECK(line.most_ms == Approx(200 / 1.2e9 * 1e3));
  CheckFailures(&FindOrInsertBar);
}

TEST_CASE("tables' bars find out kernels that do nothing", "[gpu_check]") {
  const auto message = [](absl::Status (*bar)(const BarContext&), const char* idle) {
    const Run run = RunBar(bar, TinySizes(), UINT64_MAX, nullptr, idle);
    CHECK(run.status.code() == absl::StatusCode::kInternal);
    return std::string(run.status.message());
  };
  CHECK(message(&FindBar, "look up rows").find("find: key 0 was found in slot ") == 0);
  CHECK(message(&FindBar, "fill buckets").find("find: key 0 was found in slot ") == 0);
  CHECK(message(&FindOrInsertBar, "insert rows").find("pushed out no dirty row") !=
        std::string::npos);
  CHECK(message(&FindOrInsertBar, "fill buckets").find("pushed out no dirty row") !=
        std::string::npos);
  CHECK(message(&FindOrInsertBar, "copy rows").find("find-or-insert: row ") == 0);
}

TEST_CASE("a bar's sizes follow what is free", "[gpu_check]") {
  BarSizes sizes = TinySizes();
  sizes.table_bytes = size_t{512} << 20;
  sizes.batch_bytes = sizes.copy_bytes = size_t{64} << 20;
  const Run run = RunBar(&GatherBar, sizes);
  REQUIRE(run.status.ok());
  CHECK(run.lines[0].note == "1/4 of the bar's size: 268435456 B are free");
  CHECK(run.lines[0].operations == 65536);
  CHECK(run.lines[0].copy_bytes_per_s == 2.0 * (16 << 20) * 1e3);
}

}  // namespace
}  // namespace strata::gpu_check
