// A whole step through the seam (ops/cuda/api/api.h): every call in turn fails, and each time the
// step ends with that error and nothing is left behind; in a steady step nothing allocates, and
// nothing waits but the one wait that is asked for.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/rows/apply.h"
#include "ops/cuda/rows/coalesce.h"
#include "ops/cuda/rows/pool.h"
#include "ops/optimizer.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

constexpr uint32_t kFeatures = 3000, kTableRows = 100, kDim = 12;

using testing::FailingApi;

// Gradients of a batch come in; rows are updated, gathered, and leave through pinned memory.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Make(CudaApi* api) {
    std::unique_ptr<Trainer> trainer(new Trainer(api));
    absl::Status status = trainer->Init();
    if (!status.ok()) return status;
    return trainer;
  }

  // One batch: copies in, kernels, copy out, and the one wait before a send.
  absl::Status Step(float* pooled) {
    absl::Status status = In();
    if (status.ok()) status = api_->Record(copied_in_.get(), copies_.get());
    if (status.ok()) status = api_->StreamWait(work_.get(), copied_in_.get());
    if (status.ok()) status = Work();
    if (status.ok()) status = api_->Record(done_.get(), work_.get());
    if (status.ok()) status = api_->Synchronize(done_.get());
    if (!status.ok()) return status;
    std::memcpy(pooled, pinned_.as<float>(), kTableRows * kDim * 4);
    return absl::OkStatus();
  }

  // As Step's work, launched as a graph.
  absl::Status GraphStep(float* pooled) {
    if (!graph_) {
      auto graph = CaptureGraph(api_, work_, [this] { return Work(); });
      if (!graph.ok()) return graph.status();
      graph_ = *std::move(graph);
    }
    absl::Status status = In();
    if (status.ok()) status = api_->Synchronize(copies_.get());
    if (status.ok()) status = api_->LaunchGraph(graph_.get(), work_.get());
    if (status.ok()) status = api_->Synchronize(work_.get());
    if (!status.ok()) return status;
    std::memcpy(pooled, pinned_.as<float>(), kTableRows * kDim * 4);
    return absl::OkStatus();
  }

 private:
  explicit Trainer(CudaApi* api) : api_(api) {}

  absl::Status Take(Arena* arena, size_t bytes, Buffer* out) {
    auto buffer = arena->Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    *out = *std::move(buffer);
    return absl::OkStatus();
  }

  absl::Status Init() {
    auto work = MakeStream(api_);
    if (!work.ok()) return work.status();
    work_ = *std::move(work);
    auto copies = MakeStream(api_);
    if (!copies.ok()) return copies.status();
    copies_ = *std::move(copies);
    auto copied_in = MakeEvent(api_, EventUse::kOrder);
    if (!copied_in.ok()) return copied_in.status();
    copied_in_ = *std::move(copied_in);
    auto done = MakeEvent(api_, EventUse::kLongWait);
    if (!done.ok()) return done.status();
    done_ = *std::move(done);
    auto device = Arena::Create(api_, MemoryKind::kDevice, 4 << 20, "device");
    if (!device.ok()) return device.status();
    device_arena_ = *std::move(device);
    auto pinned = Arena::Create(api_, MemoryKind::kPinned, 1 << 20, "pinned");
    if (!pinned.ok()) return pinned.status();
    pinned_arena_ = *std::move(pinned);
    const std::pair<Buffer*, size_t> wanted[] = {
        {&keys_, kFeatures * 4},         {&gradients_, kFeatures * kDim * 4},
        {&sums_, kFeatures * kDim * 4},  {&table_, kTableRows * 2 * kDim * 4},
        {&out_, kTableRows * kDim * 4},  {&all_rows_, kTableRows * 4},
        {&scalars_, sizeof(StepScalars)}};
    for (const auto& [buffer, bytes] : wanted) {
      absl::Status status = Take(device_arena_.get(), bytes, buffer);
      if (!status.ok()) return status;
    }
    absl::Status status = Take(pinned_arena_.get(), kTableRows * kDim * 4, &pinned_);
    if (status.ok()) {
      status = api_->FillAsync(table_.as<void>(), 0, table_.bytes(), work_.get());
    }
    if (!status.ok()) return status;
    auto coalescer =
        Coalescer::Create(api_, device_arena_.get(), {kFeatures, kDim, 4}, work_.get());
    if (!coalescer.ok()) return coalescer.status();
    coalescer_ = *std::move(coalescer);
    // A third of the rows of the batch's keys; skewed, so that some have many chunks.
    testing::Random random(7);
    for (uint32_t& key : host_keys_) key = random.Below(2) * random.Below(kTableRows);
    host_gradients_ = random.Floats(kFeatures * kDim);
    for (uint32_t i = 0; i < kTableRows; ++i) host_rows_[i] = i;
    return absl::OkStatus();
  }

  absl::Status In() {
    const StreamHandle s = copies_.get();
    absl::Status status = api_->CopyAsync(keys_.as<void>(), host_keys_.data(), keys_.bytes(), s);
    if (status.ok()) {
      status =
          api_->CopyAsync(gradients_.as<void>(), host_gradients_.data(), gradients_.bytes(), s);
    }
    if (status.ok()) {
      status = api_->CopyAsync(all_rows_.as<void>(), host_rows_.data(), all_rows_.bytes(), s);
    }
    if (!status.ok()) return status;
    return api_->CopyAsync(scalars_.as<void>(), &step_, sizeof step_, s);
  }

  absl::Status Work() {
    const StreamHandle s = work_.get();
    GroupedKeys grouped;
    absl::Status status = coalescer_->Group(keys_.as<void>(), kFeatures, 32, &grouped, s);
    if (status.ok()) {
      status =
          coalescer_->Sum(grouped, kDim, gradients_.as<float>(), kDim, sums_.as<float>(), kDim, s);
    }
    OptimizerConfig config;
    config.kind = OptimizerKind::kAdagrad;
    ApplyTask task;
    task.table = {table_.as<float>(), 2 * kDim};
    task.state_offset = kDim;
    task.dim = kDim;
    task.row_of = static_cast<const uint32_t*>(grouped.keys);  // a key is its row here
    task.rows = {grouped.count, kTableRows};
    task.sums = sums_.as<float>();
    task.sum_stride = kDim;
    task.step = scalars_.as<StepScalars>();
    if (status.ok()) status = Apply(*api_, config, task, s);
    PoolArguments pool;
    pool.table = task.table;
    pool.dim = kDim;
    pool.row_of = all_rows_.as<uint32_t>();
    pool.bags.most = kTableRows;
    pool.out = out_.as<float>();
    pool.out_stride = kDim;
    if (status.ok()) status = Pool(*api_, pool, s);
    if (!status.ok()) return status;
    return api_->CopyAsync(pinned_.as<void>(), out_.as<void>(), out_.bytes(), s);
  }

  CudaApi* const api_;
  Stream work_, copies_;
  Event copied_in_, done_;
  std::unique_ptr<Arena> device_arena_, pinned_arena_;
  Buffer keys_, gradients_, sums_, table_, out_, all_rows_, scalars_, pinned_;
  std::unique_ptr<Coalescer> coalescer_;
  Graph graph_;
  std::vector<uint32_t> host_keys_ = std::vector<uint32_t>(kFeatures);
  std::vector<uint32_t> host_rows_ = std::vector<uint32_t>(kTableRows);
  std::vector<float> host_gradients_;
  const StepScalars step_ = {16.0f, 0.1f, 1.0f};
};

// What two steps give; `graph`: through graphs.
absl::StatusOr<std::vector<float>> TwoSteps(CudaApi* api, bool graph) {
  auto trainer = Trainer::Make(api);
  if (!trainer.ok()) return trainer.status();
  std::vector<float> pooled(kTableRows * kDim);
  for (int step = 0; step < 2; ++step) {
    const absl::Status status =
        graph ? (*trainer)->GraphStep(pooled.data()) : (*trainer)->Step(pooled.data());
    if (!status.ok()) return status;
  }
  return pooled;
}

TEST_CASE("whichever call fails, a step ends with its error and leaves nothing", "[ops][cuda]") {
  for (bool graph : {false, true}) {
    uint64_t calls = 0, failed_late = 0;
    std::vector<float> right;
    {
      FailingApi api(UINT64_MAX);
      const auto pooled = TwoSteps(&api, graph);
      REQUIRE(pooled.ok());
      right = *pooled;
      CHECK(api.leaks() == 0);
      calls = api.calls();
    }
    CHECK(calls > 40);
    for (uint64_t failing = 0; failing < calls; ++failing) {
      FailingApi api(failing, failing % 2 == 1);
      int told = 0;
      api.WhenLost([&](const absl::Status& why) { told += IsDeviceLost(why); });
      const auto pooled = TwoSteps(&api, graph);
      INFO("call " << failing << " of " << calls);
      if (pooled.ok()) {
        // What fails while everything is given back fails nobody.
        ++failed_late;
        CHECK(testing::Differences(*pooled, right) == 0);
      } else {
        CHECK_THAT(std::string(pooled.status().message()), Catch::Contains("injected"));
        CHECK(IsDeviceLost(pooled.status()) == (failing % 2 == 1));
      }
      CHECK(api.leaks() == 0);
      CHECK(told == static_cast<int>(failing % 2));
    }
    CHECK(failed_late == (graph ? 7 : 6));  // streams, events, arenas and the graph
  }
}

TEST_CASE("a steady step neither allocates nor waits, but for its one wait", "[ops][cuda]") {
  for (testing::TestApi& test : testing::Apis()) {
    for (bool graph : {false, true}) {
      auto trainer = Trainer::Make(test.api.get());
      REQUIRE(trainer.ok());
      std::vector<float> pooled(kTableRows * kDim);
      const auto step = [&] {
        return graph ? (*trainer)->GraphStep(pooled.data()) : (*trainer)->Step(pooled.data());
      };
      REQUIRE(step().ok());
      const CallCounts before = test.api->counts();
      for (int i = 0; i < 5; ++i) REQUIRE(step().ok());
      const CallCounts after = test.api->counts();
      INFO(test.name);
      CHECK(after.allocations == before.allocations);
      // A graph's step waits for its inputs, too.
      CHECK(after.synchronisations - before.synchronisations == (graph ? 10 : 5));
    }
  }
}

TEST_CASE("an event has a time where it was made for one", "[ops][cuda]") {
  for (testing::TestApi& test : testing::Apis()) {
    INFO(test.name);
    for (const EventUse use : {EventUse::kOrder, EventUse::kLongWait, EventUse::kTiming}) {
      auto begin = MakeEvent(test.api.get(), use);
      auto end = MakeEvent(test.api.get(), EventUse::kTiming);
      REQUIRE(begin.ok());
      REQUIRE(end.ok());
      for (const Event* event : {&*begin, &*end}) {
        REQUIRE(test.api->Record(event->get(), test.stream.get()).ok());
        REQUIRE(test.api->Synchronize(event->get()).ok());
      }
      float ms = 0;
      CHECK(test.api->ElapsedMs(begin->get(), end->get(), &ms).ok() == (use == EventUse::kTiming));
      bool done = false;
      REQUIRE(test.api->IsDone(begin->get(), &done).ok());
      CHECK(done);
    }
  }
}

TEST_CASE("steps give the same bits as a graph and without, on every api", "[ops][cuda][exact]") {
  std::vector<float> first;
  for (testing::TestApi& test : testing::Apis()) {
    for (bool graph : {false, true}) {
      const auto pooled = TwoSteps(test.api.get(), graph);
      REQUIRE(pooled.ok());
      if (first.empty()) first = *pooled;
      INFO(test.name);
      CHECK(testing::Differences(*pooled, first) == 0);
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
