// A job's data plane with values on a device, through the transport inside a process.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/cuda/api/host_api.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/shape.h"
#include "tests/server/device_client.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {
namespace {

constexpr uint64_t kWork = 1;  // what the lanes compute
using C = absl::StatusCode;

TEST_CASE("a session learns which device a server takes values of", "[service][device]") {
  struct Case {
    std::string what;
    bool synchronous, hbm;
    void (*change)(JobPlan&);
    std::string device;
  };
  const auto nothing = [](JobPlan&) {};
  const std::vector<Case> cases = {
      {"bsp", true, true, nothing, "host"},
      {"async", false, true, nothing, "host"},
      {"no GPU tier", true, false, nothing, ""},
      {"a score", true, true,
       [](JobPlan& p) {
         p.tables[0].life_cycle.removal.scored = true;
         p.tables[0].life_cycle.removal.show_weight = 1.0f;
       },
       ""},
      {"admission", true, true,
       [](JobPlan& p) {
         p.tables[0].life_cycle.admission = {AdmissionType::kExact, 2, 1.0f, 1 << 16};
       },
       ""},
      {"a shard without the tier", true, true,
       [](JobPlan& p) { p.shards[2].memory.hbm_limits.clear(); }, ""}};
  for (const Case& c : cases) {
    INFO(c.what);
    JobBench bench(2, c.synchronous);
    if (c.hbm) bench.AddHbm();
    c.change(bench.plan());
    bench.Start();
    DeviceClient client(bench);
    const auto offer = client.Open();
    CHECK((offer != nullptr) == !c.device.empty());
    if (offer == nullptr) continue;
    CHECK(offer->device == c.device);
    CHECK(offer->groups.empty());
  }
}

// Pulls by tickets and without, of the step and of the one before; pushes of one node and of
// several, some of them by message.
void RunStep(JobBench& bench, DeviceClient& client, const std::vector<Reference>& references,
             uint64_t step) {
  const std::vector<std::vector<LaneNode>> nodes = {
      {{0, 4}}, {{0, 2}, {2, 4}}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, {{0, 2}, {2, 3}, {3, 4}}};
  INFO("step " << step);
  const auto parts = client.Parts(kWork, step, {0, 4});
  const auto memory = std::make_shared<Memory>();
  const DeviceValues places = client.There(parts, memory);
  const auto pull = [&](const wire::PullExtras& extras) {
    for (auto& rows : *memory) std::fill(rows.begin(), rows.end(), kUnwritten);
    const auto answer = client.Call(
        DataMethod::kPull, DeviceClient::With(client.PullRequest(parts, step, 0, extras), places));
    client.CheckServed(*answer, parts, *memory, references[step - 1]);
    return bench.Outcome(*answer).ticket;
  };
  const wire::Ticket ticket = pull({.want_ticket = true});
  REQUIRE(ticket);
  CHECK(pull({.ticket = ticket}) == ticket);

  // One that waits for the commit.
  const auto next = std::make_shared<Memory>();
  const auto waiting = client.Call(
      DataMethod::kPull,
      DeviceClient::With(client.PullRequest(parts, step + 1, 10000), client.There(parts, next)));
  REQUIRE_FALSE(waiting->has_value());

  std::vector<std::weak_ptr<Memory>> sent;
  const std::vector<LaneNode>& of_step = nodes[(step - 1) % nodes.size()];
  const bool one = of_step.size() == 1;
  for (size_t i = 0; i < of_step.size(); ++i) {
    const bool by_device = one || i != 1;  // the second by message
    const auto push =
        client.Push(kWork, step, {of_step[i]}, by_device, one ? ticket : wire::Ticket());
    if (by_device) sent.push_back(push.memory);
    for (const auto& held : sent) CHECK_FALSE(held.expired());
    REQUIRE_FALSE(waiting->has_value());
    REQUIRE(client.StatusOf(DataMethod::kPush, push.whole()).ok());
  }
  REQUIRE(waiting->has_value());
  client.CheckServed(*waiting, parts, *next, references[step]);
  for (const auto& held : sent) CHECK(held.expired());  // committed, and let go
  CHECK(bench.Hash(step) == references[step].Hash());
  pull({});  // as before the commit
}

TEST_CASE("steps by a device's memory are those by messages, and are recovered",
          "[service][device][recovery]") {
  constexpr uint64_t kSteps = 6;
  const auto references = References(kWork, 4, kSteps + 1);
  ops::gpu::HostApi api({.threads = 2});
  for (const bool logged : {false, true}) {
    for (const bool kernels : {false, true}) {
      INFO((logged ? "logged, " : "memory, ") << (kernels ? "kernels" : "host"));
      JobBench bench(4);
      bench.AddHbm();
      bench.plan().logged = logged;
      if (kernels) {
        bench.plan().make_gpu = [&api](const storage::gpu::GpuShape& shape) {
          return storage::gpu::MakeDeviceGpuBackend(&api, shape, {});
        };
      }
      bench.Start();
      DeviceClient client(bench);
      REQUIRE(client.Open() != nullptr);
      for (uint64_t step = 1; step <= kSteps; ++step) RunStep(bench, client, references, step);
      CHECK(bench.keys_.pulled_there > 0);
      CHECK(bench.keys_.pulled_there < bench.keys_.pulled);
      CHECK(bench.keys_.pushed_there > 0);
      CHECK(bench.keys_.pushed_there < bench.keys_.pushed);
      if (logged) {
        bench.plan().was_open = true;
        bench.Restart();
        REQUIRE(bench.recovered_);
        CHECK(bench.Hash(kSteps) == references[kSteps].Hash());
        REQUIRE(client.Open() != nullptr);
        RunStep(bench, client, references, kSteps + 1);
      }
      bench.Stop();
      CHECK(bench.memory_.used() == 0);
    }
  }
  CHECK(api.leaks() == 0);
}

TEST_CASE("a commit that its log delays still has what a device holds", "[service][device]") {
  const auto references = References(kWork, 2, 1);
  JobBench bench(2);
  bench.AddHbm();
  bench.Start();
  DeviceClient client(bench);
  client.Open();
  {
    ScopedFailpoint full("server.commit.append",
                         {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
    REQUIRE(client.StatusOf(DataMethod::kPush, client.Push(kWork, 1, {{0, 2}}, true).whole()).ok());
  }
  bench.timer_.Advance(absl::Milliseconds(200));
  bench.pool_.RunAll();
  CHECK(bench.Hash(1) == references[1].Hash());
}

TEST_CASE("what comes again, by the other way, counts once", "[service][device]") {
  const auto references = References(kWork, 2, 2);
  JobBench bench(2);
  bench.AddHbm();
  bench.Start();
  DeviceClient client(bench);
  client.Open();
  for (const bool first : {true, false}) {  // by the device
    const uint64_t step = first ? 1 : 2;
    const auto push = [&](bool by_device, LaneNode node) {
      const auto answer =
          client.Call(DataMethod::kPush, client.Push(kWork, step, {node}, by_device).whole());
      REQUIRE(answer->has_value());
      REQUIRE((*answer)->ok());
      return wire::ParsePushReply((**answer)->span())->repeated;
    };
    CHECK_FALSE(push(first, {0, 1}));
    CHECK(push(!first, {0, 1}));
    CHECK(push(first, {0, 1}));
    CHECK_FALSE(push(!first, {1, 2}));
    CHECK(bench.Hash(step) == references[step].Hash());
    CHECK(push(!first, {0, 1}));  // old
    CHECK(bench.Hash(step) == references[step].Hash());
  }
}

TEST_CASE("windows by a device's memory are those by messages", "[service][device][async]") {
  std::vector<std::vector<uint8_t>> rows;
  for (const bool by_device : {false, true}) {
    JobBench bench(2, /*synchronous=*/false);
    bench.AddHbm();
    bench.Start();
    DeviceClient client(bench);
    REQUIRE(client.Open() != nullptr);
    for (uint64_t window = 0; window < 6; ++window) {
      wire::PushFields fields;
      fields.task = TaskId(1);
      fields.window = window;
      const auto push = client.Push(kWork, 10 + window, {{0, 1}}, by_device, {}, fields);
      REQUIRE(client.StatusOf(DataMethod::kPush, push.whole()).ok());
      REQUIRE(client.StatusOf(DataMethod::kPush, push.whole()).ok());  // once
    }
    const auto all = [&] {
      std::vector<uint8_t> bytes;
      const auto answer = bench.Pull(0, 0);
      for (const wire::GroupView& g : bench.Outcome(*answer).groups) {
        bytes.insert(bytes.end(), g.value_bytes.begin(), g.value_bytes.end());
      }
      return bytes;
    };
    rows.push_back(all());
    bench.plan().was_open = true;
    bench.Restart();
    REQUIRE(bench.recovered_);
    rows.push_back(all());
  }
  CHECK(rows[0].size() == 60 * 20);
  CHECK(rows[1] == rows[0]);
  CHECK(rows[2] == rows[0]);
  CHECK(rows[3] == rows[0]);
}

TEST_CASE("a pull whose step is not there yet writes nothing", "[service][device]") {
  JobBench bench(2);
  bench.AddHbm();
  bench.Start();
  DeviceClient client(bench);
  client.Open();
  const auto parts = client.Parts(kWork, 1, {0, 2});
  const auto memory = std::make_shared<Memory>();
  const auto answer =
      client.Call(DataMethod::kPull,
                  DeviceClient::With(client.PullRequest(parts, 2, 0), client.There(parts, memory)));
  CHECK(bench.Outcome(*answer).outcome == wire::PullOutcome::kNotYet);
  CHECK(bench.Outcome(*answer).groups.empty());
  for (const auto& rows : *memory) {
    CHECK(std::count(rows.begin(), rows.end(), kUnwritten) == static_cast<ptrdiff_t>(rows.size()));
  }
}

TEST_CASE("wrong values on a device are refused, and change nothing", "[service][device][input]") {
  const auto references = References(kWork, 2, 1);
  JobBench bench(2);
  bench.AddHbm();
  bench.Start();
  DeviceClient client(bench);
  client.Open();
  const auto parts = client.Parts(kWork, 1, {0, 2});
  const auto memory = std::make_shared<Memory>();
  const DeviceValues places = client.There(parts, memory);
  const auto push = client.Push(kWork, 1, {{0, 2}}, true);
  const auto by_message = client.Push(kWork, 1, {{0, 2}}, false);
  const auto code = [&](DataMethod m, const Buffer& message, auto change, DeviceValues values) {
    change(values);
    return client.StatusOf(m, DeviceClient::With(message, std::move(values))).code();
  };
  const auto refused = [&](C expected, auto change) {
    CHECK(code(DataMethod::kPull, client.PullRequest(parts, 1, 0), change, places) == expected);
    CHECK(code(DataMethod::kPush, push.message, change, push.there) == expected);
  };
  refused(C::kFailedPrecondition, [](DeviceValues& v) { v.device = "GPU-of-another"; });
  refused(C::kInvalidArgument, [](DeviceValues& v) { v.groups.pop_back(); });
  refused(C::kInvalidArgument, [](DeviceValues& v) { v.groups.push_back(nullptr); });
  refused(C::kInvalidArgument, [](DeviceValues& v) { v.groups.back() = v.groups.front(); });
  const auto same = [](DeviceValues&) {};
  for (const auto codec : {wire::ValueCodec::kBf16, wire::ValueCodec::kInt8}) {
    CHECK(code(DataMethod::kPull, client.PullRequest(parts, 1, 0, {.codec = codec}), same,
               places) == C::kInvalidArgument);
  }
  // A ticket's groups are what counts; the message has none.
  const auto given =
      client.Call(DataMethod::kPull, client.PullRequest(parts, 1, 0, {.want_ticket = true}));
  const wire::Ticket ticket = bench.Outcome(*given).ticket;
  CHECK(code(
            DataMethod::kPull, client.PullRequest(parts, 1, 0, {.ticket = ticket}),
            [](DeviceValues& v) { v.groups.clear(); }, places) == C::kInvalidArgument);
  // Values neither here nor there, and both.
  const auto none = [](DeviceValues& v) { v.groups[0] = nullptr; };
  CHECK(code(DataMethod::kPush, push.message, none, push.there) == C::kInvalidArgument);
  CHECK(client.StatusOf(DataMethod::kPush, push.message).code() == C::kInvalidArgument);
  CHECK(code(DataMethod::kPush, by_message.message, same, push.there) == C::kInvalidArgument);
  const auto ticketed = client.Push(kWork, 1, {{0, 2}}, true, ticket);
  CHECK(code(DataMethod::kPush, ticketed.message, none, ticketed.there) == C::kInvalidArgument);
  CHECK(client.StatusOf(DataMethod::kPush, client.Push(kWork, 1, {{0, 2}}, false, ticket).message)
            .ok());
  CHECK(bench.Hash(1) == references[1].Hash());
  for (const auto& rows : *memory) {
    CHECK(std::count(rows.begin(), rows.end(), kUnwritten) == static_cast<ptrdiff_t>(rows.size()));
  }

  // A server whose rows lie on no device.
  JobBench plain(2);
  plain.Start();
  DeviceClient other(plain);
  CHECK(other.Open() == nullptr);
  const auto pull_there = other.PullRequest(parts, 1, 0);
  CHECK(other.StatusOf(DataMethod::kPull, DeviceClient::With(pull_there, places)).code() ==
        C::kFailedPrecondition);
  CHECK(other.StatusOf(DataMethod::kPush, other.Push(kWork, 1, {{0, 2}}, true).whole()).code() ==
        C::kFailedPrecondition);
  CHECK(plain.Hash(0) == references[0].Hash());
}

}  // namespace
}  // namespace strata::server
