// Pulls and pushes of a lane whose server shares its model's device, until the server does not.
#include "worker/parameter_client.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/cuda/host_api.h"
#include "proto/core/device_values.h"
#include "proto/core/message_codec.h"
#include "proto/runtime/inproc_transport.h"
#include "tests/worker/served_rows.h"
#include "worker/router.h"

namespace strata {
namespace {

using device::RowMemory;

// A server's side of the conversation: weights by key, and what was pushed.
class Server : public DataHandler {
 public:
  explicit Server(const ModelTables* tables) : tables_(tables) {}

  void Handle(DataMethod method, Buffer request, DataReply reply) override {
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
    reply(method == DataMethod::kPull ? testing::ServePull(*tables_, request) : Push(request));
  }

  bool offers = true;
  int by_device = 0, refused = 0;
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
  explicit Fixture(uint64_t keys) {
    links.SetAddresses({"s"});
    REQUIRE(listener.ok());
    ParameterClientOptions options;
    options.exchange = &exchange;
    options.links = &links;
    options.sequences = &sequences;
    options.memory = memory.get();
    options.features = &tables.tables[0];
    options.stats = &stats;
    client = std::make_unique<ParameterClient>(options);
    std::vector<uint64_t> squares;
    for (uint64_t i = 0; i < keys; ++i) squares.push_back(i * i);
    Router().Route(tables.tables[0], squares, &routed);
    for (const uint64_t key : routed.keys) {
      for (size_t j = 0; j < exchange.row_dim(); ++j) right.push_back(testing::WeightOf(key, j));
    }
  }
  KeyList list() const { return {routed.keys, routed.positions}; }

  const ModelTables tables = testing::SmallTables();
  const Exchange exchange{tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4)};
  Server server{&tables};
  const std::unique_ptr<DataTransport> transport = MakeInProcTransport();
  const absl::StatusOr<std::unique_ptr<DataListener>> listener = transport->Listen("s", &server);
  ServerLinks links{transport.get(), 1};
  ops::gpu::HostApi api{{}};
  const std::unique_ptr<RowMemory> memory = *RowMemory::Make(&api, "host", nullptr);
  TrainingStats stats;
  SequenceCounter sequences;
  RoutedKeys routed;
  std::vector<float> right;  // weights of the keys
  std::unique_ptr<ParameterClient> client;
};

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

}  // namespace
}  // namespace strata
