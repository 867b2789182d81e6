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
#include "proto/core/job_spec.h"
#include "proto/core/message_codec.h"
#include "proto/core/position.h"
#include "proto/runtime/inproc_transport.h"
#include "worker/router.h"

namespace strata {
namespace {

using device::RowMemory;

ModelTables Tables() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("t");
  job.mutable_spec()->mutable_data()->set_format("libfm");
  job.mutable_spec()->mutable_data()->add_train(std::string("x"));
  job.mutable_spec()->mutable_model()->set_type("deepfm");
  job.mutable_spec()->mutable_model()->set_embedding_dim(3);
  job.mutable_spec()->mutable_model()->add_hidden(100);
  job.mutable_spec()->mutable_storage()->set_partitions(64);
  REQUIRE(ResolveJob(job).ok());
  auto tables = MakeModelTables(job.spec(), 5, 2);
  REQUIRE(tables.ok());
  return *std::move(tables);
}

float ValueOf(uint64_t key, size_t j) {
  return static_cast<float>(Mix64(key) % 1000) + static_cast<float>(j) / 1024;
}

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
    reply(method == DataMethod::kPull ? Pull(request) : Push(request));
  }

  bool offers = true;
  int by_device = 0, refused = 0;
  std::vector<float> pushed;  // of table 0, as in the last push

 private:
  Buffer Pull(const Buffer& request) {
    const auto view = wire::ParsePullRequest(request.span());
    const auto& values = request.device_values();
    std::vector<wire::ValueGroup> groups;
    for (size_t g = 0; g < view->groups.size(); ++g) {
      const wire::GroupView& group = view->groups[g];
      const bool there = values != nullptr && values->groups[g] != nullptr;
      groups.push_back({group.table, group.shard, group.keys(), there ? 0 : Dim(group.table)});
    }
    auto reply = wire::PullReplyEncoder::Make(groups);
    for (size_t g = 0; g < groups.size(); ++g) {
      const uint32_t dim = Dim(groups[g].table);
      float* const to = groups[g].dim == 0 ? values->groups[g] : reply->values(g).data();
      for (size_t i = 0; i < groups[g].keys * dim; ++i) {
        const float value = ValueOf(view->groups[g].key(i / dim).value, i % dim);
        std::memcpy(to + i, &value, sizeof(float));
      }
    }
    return reply->Finish({}, wire::PullOutcome::kServed);
  }

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

TEST_CASE("a client's rows stay on a device as long as its servers take them", "[worker][device]") {
  const ModelTables tables = Tables();
  const Exchange exchange(tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4));
  Server server(&tables);
  const auto transport = MakeInProcTransport();
  auto listener = transport->Listen("s", &server);
  REQUIRE(listener.ok());
  ServerLinks links(transport.get(), 1);
  links.SetAddresses({"s"});
  ops::gpu::HostApi api({});
  const auto memory = *RowMemory::Make(&api, "host", nullptr);
  TrainingStats stats;
  SequenceCounter sequences;
  ParameterClientOptions options;
  options.exchange = &exchange;
  options.links = &links;
  options.sequences = &sequences;
  options.memory = memory.get();
  options.features = &tables.tables[0];
  options.stats = &stats;
  ParameterClient client(options);

  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 300; ++i) keys.push_back(i * i);
  RoutedKeys routed;
  Router().Route(tables.tables[0], keys, &routed);
  const KeyList list = {routed.keys, routed.positions};
  const uint32_t dim = exchange.row_dim();
  std::vector<float> right;
  for (const uint64_t key : routed.keys) {
    for (size_t j = 0; j < dim; ++j) right.push_back(ValueOf(key, j));
  }

  ParameterBlock block;
  REQUIRE(client.Pull(Step(0), list, &block).ok());
  REQUIRE(block.rows_there != nullptr);
  std::vector<float> got(right.size());
  REQUIRE(memory->Download(block.rows_there.get(), got.size(), got.data()).ok());
  CHECK(got == right);
  CHECK(stats.rows_there() == 300);

  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 1;
  gradient->keys = routed.keys;
  gradient->positions = routed.positions;
  gradient->rows_there = block.rows_there;
  REQUIRE(client.Push({}, gradient).ok());
  CHECK(server.pushed == right);
  CHECK(server.by_device == 2);
  CHECK(stats.rows_there() == 600);

  // The server is another one now: the same call is made again, in messages.
  server.offers = false;
  server.pushed.clear();
  REQUIRE(client.Push({}, gradient).ok());
  CHECK(server.refused == 1);
  CHECK(server.pushed == right);
  REQUIRE(client.Pull(Step(0), list, &block).ok());
  CHECK(block.rows_there == nullptr);
  CHECK(block.rows == right);
  CHECK(server.refused == 1);  // it was not asked again
  CHECK(server.by_device == 2);
  CHECK(stats.rows_there() == 600);
}

TEST_CASE("a pull that finds another server goes again in messages", "[worker][device]") {
  const ModelTables tables = Tables();
  const Exchange exchange(tables, ShardMap::Even(MapEpoch(1), Partitioning(64), 1, 4));
  Server server(&tables);
  const auto transport = MakeInProcTransport();
  auto listener = transport->Listen("s", &server);
  REQUIRE(listener.ok());
  ServerLinks links(transport.get(), 1);
  links.SetAddresses({"s"});
  ops::gpu::HostApi api({});
  const auto memory = *RowMemory::Make(&api, "host", nullptr);
  TrainingStats stats;
  ParameterClientOptions options;
  options.exchange = &exchange;
  options.links = &links;
  options.memory = memory.get();
  options.features = &tables.tables[0];
  options.stats = &stats;
  ParameterClient client(options);
  ParameterBlock block;
  REQUIRE(client.Pull(Step(0), {}, &block).ok());  // opens
  server.offers = false;
  std::vector<uint64_t> keys = {7};
  RoutedKeys routed;
  Router().Route(tables.tables[0], keys, &routed);
  REQUIRE(client.Pull(Step(0), {routed.keys, routed.positions}, &block).ok());
  CHECK(server.refused == 1);
  REQUIRE(block.rows.size() == exchange.row_dim());
  CHECK(block.rows[1] == ValueOf(7, 1));
}

}  // namespace
}  // namespace strata
