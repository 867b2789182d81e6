// Pulls and pushes of a lane: by a device that its server shares, until the server does not, and
// with tickets.
#include "worker/client/parameter_client.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ops/cuda/api/host_api.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/scripted_servers.h"
#include "tests/worker/client/served_rows.h"
#include "worker/client/cancel_flag.h"
#include "worker/step/router.h"

namespace strata {
namespace {

using device::RowMemory;
using testing::ScriptedServers;
using Call = ScriptedServers::Call;

// A server's side of the conversation: weights by key, and what was pushed.
class Server : public DataHandler {
 public:
  explicit Server(const ModelTables* tables) : tables_(tables) {}

  void Handle(const Caller&, DataMethod method, Buffer request, DataReply reply) override {
    if (method == DataMethod::kOpenSession) {
      Buffer answer = wire::EncodeOpenSessionReply({});
      if (!offers) return reply(answer);
      auto offer = std::make_shared<DeviceValues>();
      offer->device = "host";
      return reply(answer.With(std::move(offer)));
    }
    const auto& values = request.device_values();
    if (values != nullptr && !offers) {
      ++refused;
      return reply(absl::FailedPreconditionError("the rows lie on no device here"));
    }
    by_device += values != nullptr;
    pulls += method == DataMethod::kPull;
    reply(method == DataMethod::kPull ? testing::ServePull(*tables_, request) : Push(request));
  }

  bool offers = true;
  int by_device = 0, refused = 0, pulls = 0;
  std::vector<float> pushed;  // of table 0, as in the last push

 private:
  Buffer Push(const Buffer& request) {
    const auto view = wire::ParsePushRequest(request.span());
    const auto& values = request.device_values();
    pushed.clear();
    for (size_t g = 0; g < view->groups.size(); ++g) {
      const wire::GroupView& group = view->groups[g];
      if (group.table != TableId(0)) continue;
      const float* const there = values == nullptr ? nullptr : values->groups[g];
      for (size_t i = 0; i < group.keys() * Dim(group.table); ++i) {
        pushed.push_back(there != nullptr ? there[i] : group.value(i));
      }
    }
    return wire::EncodePushReply({});
  }

  uint32_t Dim(TableId table) const { return tables_->tables[table.value].dim(); }

  const ModelTables* const tables_;
};

// A client and the one server that it talks to.
struct Fixture {
  explicit Fixture(uint64_t keys, const Exchange::Limits& limits = {})
      : exchange(tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4), limits) {
    links.SetPeers({{"s", "s"}});
    REQUIRE(listener.ok());
    ParameterClientOptions options;
    options.exchange = &exchange;
    options.links = &links;
    options.sequences = &sequences;
    options.memory = memory.get();
    options.tables = tables.tables;
    options.stats = &stats;
    client = std::make_unique<ParameterClient>(options);
    std::vector<uint64_t> squares;
    for (uint64_t i = 0; i < keys; ++i) squares.push_back(i * i);
    Router().Route(tables.tables[0], squares, &routed);
    for (const uint64_t key : routed.keys) {
      for (size_t j = 0; j < exchange.row_dims()[0]; ++j)
        right.push_back(testing::WeightOf(key, j));
    }
  }
  KeyList list() const { return {routed.keys, routed.positions, routed.runs}; }

  const ModelTables tables = testing::SmallTables();
  const Exchange exchange;
  Server server{&tables};
  const std::unique_ptr<DataTransport> transport = MakeInProcTransport();
  const absl::StatusOr<std::unique_ptr<DataListener>> listener = transport->Listen("s", &server);
  ServerLinks links{transport.get(), 1, Caller::Nobody()};
  ops::gpu::HostApi api{{}};
  const std::unique_ptr<RowMemory> memory = *RowMemory::Make(&api, "host", nullptr);
  TrainingStats stats;
  SequenceCounter sequences;
  RoutedKeys routed;
  std::vector<float> right;  // weights of the keys
  std::unique_ptr<ParameterClient> client;
};

TEST_CASE("a client's pull goes in parts where a message cannot carry its reply", "[worker]") {
  ParameterBlock whole;
  Fixture one(3000);
  one.server.offers = false;
  REQUIRE(one.client->Pull(Step(0), one.list(), &whole).ok());
  CHECK(one.server.pulls == 1);
  for (const bool on_device : {false, true}) {
    Fixture f(3000, {.pull_bytes = 60'000});
    f.server.offers = on_device;
    ParameterBlock block;
    REQUIRE(f.client->Pull(Step(0), f.list(), &block).ok());
    CHECK(f.server.pulls > 1);
    std::vector<float> got = block.rows;
    if (on_device) {
      got.resize(f.right.size());
      REQUIRE(f.memory->Download(block.rows_there.get(), got.size(), got.data()).ok());
      CHECK(f.server.by_device == f.server.pulls);
      CHECK(f.stats.rows_there() == 3000);
    }
    CHECK(got == f.right);
    CHECK(block.dense == whole.dense);
  }
  Fixture f(3000, {.pull_bytes = 1000});
  ParameterBlock none;
  CHECK(absl::IsResourceExhausted(f.client->Pull(Step(0), f.list(), &none)));
  CHECK(f.server.pulls == 0);
}

TEST_CASE("a client's rows stay on a device as long as its servers take them", "[worker][device]") {
  Fixture f(300);
  ParameterBlock block;
  REQUIRE(f.client->Pull(Step(0), f.list(), &block).ok());
  REQUIRE(block.rows_there != nullptr);
  std::vector<float> got(f.right.size());
  REQUIRE(f.memory->Download(block.rows_there.get(), got.size(), got.data()).ok());
  CHECK(got == f.right);
  CHECK(f.stats.rows_there() == 300);

  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 1;
  gradient->keys = f.routed.keys;
  gradient->positions = f.routed.positions;
  gradient->runs = f.routed.runs;
  gradient->rows_there = block.rows_there;
  REQUIRE(f.client->Push({}, gradient).ok());
  CHECK(f.server.pushed == f.right);
  CHECK(f.server.by_device == 2);
  CHECK(f.stats.rows_there() == 600);

  // The server is another one now: the same call is made again, in messages.
  f.server.offers = false;
  f.server.pushed.clear();
  REQUIRE(f.client->Push({}, gradient).ok());
  CHECK(f.server.refused == 1);
  CHECK(f.server.pushed == f.right);
  REQUIRE(f.client->Pull(Step(0), f.list(), &block).ok());
  CHECK(block.rows_there == nullptr);
  CHECK(block.rows == f.right);
  CHECK(f.server.refused == 1);  // it was not asked again
  CHECK(f.server.by_device == 2);
  CHECK(f.stats.rows_there() == 600);
}

TEST_CASE("a pull that finds another server goes again in messages", "[worker][device]") {
  Fixture f(8);
  ParameterBlock block;
  REQUIRE(f.client->Pull(Step(0), {}, &block).ok());  // opens
  f.server.offers = false;
  REQUIRE(f.client->Pull(Step(0), f.list(), &block).ok());
  CHECK(f.server.refused == 1);
  CHECK(block.rows == f.right);
}

// A client whose pulls ask for tickets, and two servers that the test speaks for.
struct Ticketed {
  Ticketed() {
    links.SetPeers(ScriptedServers::Peers(2));
    ParameterClientOptions options;
    options.exchange = &exchange;
    options.links = &links;
    options.timer = &timer;
    options.sequences = &sequences;
    options.tickets = true;
    options.cancelled = &cancelled;
    client = std::make_unique<ParameterClient>(options);
    std::vector<uint64_t> squares;
    for (uint64_t i = 0; i < 300; ++i) squares.push_back(i * i);
    Router().Route(tables.tables[0], squares, &routed);
    gradient = std::make_shared<Gradient>();
    gradient->examples = 1;
    gradient->keys = routed.keys;
    gradient->positions = routed.positions;
    gradient->runs = routed.runs;
    gradient->rows.assign(routed.keys.size() * exchange.row_dims()[0], 1.0f);
  }
  ~Ticketed() {
    cancelled.Set();
    servers.Close();
    while (result.valid() &&
           result.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout) {
      timer.Advance(absl::Seconds(1));
    }
  }

  // Pulls; server s gives ticket s + 1.
  void Pull(bool first) {
    result = std::async(std::launch::async, [this] {
      return client->Pull(Step(0), {routed.keys, routed.positions, routed.runs}, &block);
    });
    for (uint32_t s : {0, 1}) {
      if (first) servers.Next(s, DataMethod::kOpenSession).reply(testing::OpenReply({}));
      const Call pull = servers.Next(s, DataMethod::kPull);
      const auto view = wire::ParsePullRequest(pull.request.span());
      CHECK(view->want_ticket);
      pull.reply(testing::ServePull(tables, pull.request, {}, TicketFor(*view, s + 1)));
    }
    REQUIRE(result.get().ok());
  }
  static wire::Ticket TicketFor(const wire::PullRequestView& view, uint64_t number) {
    std::vector<std::vector<Key>> keys;
    std::vector<wire::KeyGroup> groups;
    uint64_t count = 0;
    for (const wire::GroupView& group : view.groups) {
      auto& list = keys.emplace_back();
      for (size_t i = 0; i < group.keys(); ++i) list.push_back(group.key(i));
      count += list.size();
    }
    for (size_t g = 0; g < keys.size(); ++g) {
      groups.push_back({view.groups[g].table, view.groups[g].shard, keys[g]});
    }
    return {1, number, count, wire::FingerprintOf(groups)};
  }
  void StartPush() {
    result = std::async(std::launch::async, [this] { return client->Push({}, gradient, &theirs); });
  }
  // The number of the ticket that the push names; 0: it goes with keys.
  static uint64_t Named(const Call& push) {
    return wire::ParsePushRequest(push.request.span())->contributions[0].ticket.number;
  }
  Call NextPush(uint32_t server) { return servers.Next(server, DataMethod::kPush); }
  // The client backs off; wakes it.
  void Pause() {
    timer.AwaitAlarms(1);
    timer.AdvanceTo(timer.next());
  }
  static Buffer Accepted(bool repeated = false) { return wire::EncodePushReply({{}, repeated}); }

  ScriptedServers servers;
  ManualTimer timer;
  const ModelTables tables = testing::SmallTables();
  const Exchange exchange{tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 2, 4)};
  ServerLinks links{&servers, 2, Caller::Nobody()};
  SequenceCounter sequences;
  CancelFlag cancelled;
  RoutedKeys routed;
  ParameterBlock block;
  std::shared_ptr<Gradient> gradient;
  std::unique_ptr<ParameterClient> client;
  bool theirs = false;
  std::future<absl::Status> result;
};

TEST_CASE("a push of the keys of the last pull names its tickets, once", "[worker]") {
  Ticketed f;
  f.Pull(true);
  f.StartPush();
  const Call first = f.NextPush(0), second = f.NextPush(1);
  CHECK(Ticketed::Named(first) == 1);
  CHECK(Ticketed::Named(second) == 2);
  first.reply(absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "1 is gone")));
  const Call again = f.NextPush(0);
  CHECK(Ticketed::Named(again) == 0);
  CHECK(wire::ParsePushRequest(again.request.span())->fields ==
        wire::ParsePushRequest(first.request.span())->fields);
  again.reply(Ticketed::Accepted());
  second.reply(Ticketed::Accepted());
  REQUIRE(f.result.get().ok());
  f.StartPush();  // they are used up
  for (uint32_t s : {0, 1}) {
    const Call push = f.NextPush(s);
    CHECK(Ticketed::Named(push) == 0);
    push.reply(Ticketed::Accepted());
  }
  CHECK(f.result.get().ok());
}

TEST_CASE("a push of other keys names no tickets", "[worker]") {
  Ticketed f;
  f.Pull(true);
  const auto positions = f.gradient->positions;
  f.gradient->positions =
      std::vector<uint64_t>(positions.begin(), positions.begin() + positions.size() - 1);
  f.gradient->keys = std::vector<uint64_t>(f.gradient->keys.begin(),
                                           f.gradient->keys.begin() + positions.size() - 1);
  f.gradient->runs = {{0, 0, positions.size() - 1}};
  f.StartPush();
  for (uint32_t s : {0, 1}) {
    const Call push = f.NextPush(s);
    CHECK(Ticketed::Named(push) == 0);
    push.reply(Ticketed::Accepted());
  }
  CHECK(f.result.get().ok());
}

TEST_CASE("a window that a server had is somebody else's, unless a try of ours failed before",
          "[worker]") {
  Ticketed f;
  f.Pull(true);
  f.StartPush();
  f.NextPush(0).reply(Ticketed::Accepted());
  SECTION("another's") {
    f.NextPush(1).reply(Ticketed::Accepted(/*repeated=*/true));
    REQUIRE(f.result.get().ok());
    CHECK(f.theirs);
  }
  SECTION("ours") {
    f.NextPush(1).reply(absl::UnavailableError("the answer was lost"));
    f.Pause();
    f.NextPush(1).reply(Ticketed::Accepted(/*repeated=*/true));
    REQUIRE(f.result.get().ok());
    CHECK_FALSE(f.theirs);
  }
  SECTION("another's, though our ticket was stale") {
    f.NextPush(1).reply(absl::FailedPreconditionError(absl::StrCat(wire::kTicketError, "x")));
    f.NextPush(1).reply(Ticketed::Accepted(/*repeated=*/true));
    REQUIRE(f.result.get().ok());
    CHECK(f.theirs);
  }
  SECTION("another's, though our session was lost") {
    f.NextPush(1).reply(absl::FailedPreconditionError("header.session 6 was not opened"));
    f.Pause();
    f.servers.Next(1, DataMethod::kOpenSession).reply(absl::UnavailableError("away"));
    f.Pause();
    f.servers.Next(1, DataMethod::kOpenSession).reply(testing::OpenReply({}));
    f.NextPush(1).reply(Ticketed::Accepted(/*repeated=*/true));
    REQUIRE(f.result.get().ok());
    CHECK(f.theirs);
  }
}

TEST_CASE("a window is somebody else's also where our first try had to wait for its server",
          "[worker]") {
  Ticketed f;
  SECTION("to be open") {
    f.StartPush();
    f.servers.Next(1, DataMethod::kOpenSession).reply(absl::UnavailableError("away"));
    f.Pause();
  }
  SECTION("to have an address") {
    f.links.SetPeers({{"0", "0"}, {"", ""}});
    f.StartPush();
    f.timer.AwaitAlarms(1);
    f.links.SetPeers({{"0", "0"}, {"1", "1"}});
    f.Pause();
  }
  f.servers.Next(1, DataMethod::kOpenSession).reply(testing::OpenReply({}));
  f.NextPush(1).reply(Ticketed::Accepted(/*repeated=*/true));
  f.servers.Next(0, DataMethod::kOpenSession).reply(testing::OpenReply({}));
  f.NextPush(0).reply(Ticketed::Accepted());
  REQUIRE(f.result.get().ok());
  CHECK(f.theirs);
}

}  // namespace
}  // namespace strata
