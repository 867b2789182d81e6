// A synchronous trainer by itself: servers say what the test says, and time moves by hand. The
// trainer runs in a thread of its own, of which each call is awaited by name.
#ifndef STRATA_TESTS_WORKER_BSP_TRAINER_FIXTURE_H_
#define STRATA_TESTS_WORKER_BSP_TRAINER_FIXTURE_H_

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/small_training.h"
#include "worker/bsp/trainer.h"
#include "worker/client/exchange.h"
#include "worker/client/push_sequences.h"
#include "worker/client/server_links.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/train/plan.h"

namespace strata::testing {

inline constexpr uint64_t kIncarnation = 70;

// What a server of that clock says of itself.
wire::ServerState At(uint64_t clock, uint64_t incarnation = kIncarnation);

struct TrainerSetup {
  uint32_t servers = 2;
  uint32_t lanes = 2;  // of the job
  uint64_t last_step = 2;
  bool prefetch = false;
  bool device = false;
  wire::ValueCodec codec = wire::ValueCodec::kFloat32;
  Exchange::Limits limits = {};  // beyond them pulls and pushes go in parts
};

// One thread, the test's.
class TrainerFixture {
 public:
  using Call = ScriptedServers::Call;

  explicit TrainerFixture(const TrainerSetup& setup = {});
  ~TrainerFixture();

  void Start(const std::vector<uint32_t>& lanes);
  // Every server is opened, at `clock`.
  void Open(uint64_t clock = 0, const std::string& device = "");
  // The server's next call, which is of that step.
  Call NextPull(uint32_t server, uint64_t step);
  Call NextPush(uint32_t server, uint64_t step);
  static Sequence SequenceOf(const Call& push);
  Buffer Weights(const Call& pull, const wire::ServerState& state,
                 const wire::Ticket& ticket = {}) const;
  static Buffer Without(wire::PullOutcome outcome, const wire::ServerState& state);
  // Answer the next pull, or push, which is of that step, well.
  void Serve(uint32_t server, uint64_t step);
  void ServeAll(uint64_t step);
  void Accept(uint32_t server, uint64_t step);
  void AcceptAll(uint64_t step);
  // The trainer sleeps for `ms`; wakes it.
  void AwaitPause(int ms);
  WorkerJobReport Report() const;

  ScriptedServers servers;
  ManualTimer timer;
  TrainingPlan plan;
  const Exchange exchange;
  ServerLinks links;
  MadeUpSource source;
  PromptPreparer preparer{&source, &plan.tables.tables[0]};
  CountingModel model;
  ops::gpu::HostApi api{{}};
  const std::unique_ptr<device::RowMemory> memory = *device::RowMemory::Make(&api, "host", nullptr);
  const std::unique_ptr<ops::Parallel> parallel = ops::MakeParallel(1);
  TrainingStats stats;
  NotedBoundary boundary;
  SequenceCounter sequences;
  std::unique_ptr<BspTrainer> trainer;
  std::future<absl::Status> result;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_BSP_TRAINER_FIXTURE_H_
