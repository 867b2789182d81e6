// Promise P10: what a server is sent, however broken, neither ends it nor changes its state.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes ToBytes(const Buffer& buffer) { return {buffer.span().begin(), buffer.span().end()}; }

// The first shard that lies on the server of that name.
ShardAssignment FirstShard(const JobShards& shards, const std::string& server) {
  for (const ShardStatus& shard : shards.shards()) {
    if (shards.servers(static_cast<int>(shard.place().server())).name() == server) {
      return shard.place();
    }
  }
  FAIL("no shard on " << server);
  return {};
}

// What somebody sends to a server who knows a job: a shard there, and three keys that lie in it.
class Client {
 public:
  Client(const JobShards& shards, SessionId session, const ShardAssignment& place,
         const std::string& address)
      : header_{JobId(shards.job()), session, Generation(shards.generation()),
                MapEpoch(shards.map_epoch())},
        cluster_id_(shards.cluster_id()),
        job_uid_(shards.job_uid()),
        transport_(MakeGrpcTransport()),
        channel_(transport_->Connect({address, "s"}, Caller::Nobody())),
        shard_(place.shard()) {
    const auto tables =
        MakeModelTables(shards.spec().spec(), shards.shape().fields(), shards.shape().numeric());
    REQUIRE(tables.ok());
    const TableSpec& table = tables->tables[0];
    dim_ = table.push_dim();
    const Partitioning partitioning(shards.spec().spec().storage().partitions());
    std::map<Position, Key> keys;
    for (uint64_t k = 0; keys.size() < 3; ++k) {
      const Position position = table.PositionOfKey(Key(k));
      const uint32_t partition = partitioning.Of(position).value;
      if (partition < place.first_partition() || partition > place.last_partition()) continue;
      keys[position] = Key(k);
    }
    for (const auto& [position, key] : keys) keys_.push_back(key);
  }

  const wire::Header& header() const { return header_; }
  // Bits of the values that Push carries.
  size_t value_bits() const { return keys_.size() * dim_ * 32; }

  absl::Status Call(DataMethod method, const Bytes& bytes) {
    return channel_->CallAndWait(method, Buffer::CopyOf(bytes), absl::Seconds(20)).status();
  }
  absl::Status Open(const wire::Header& header) {
    return Call(DataMethod::kOpenSession,
                ToBytes(wire::EncodeOpenSessionRequest(OpenRequest(header))));
  }
  wire::OpenSessionRequest OpenRequest(const wire::Header& header) const {
    return {header, cluster_id_, job_uid_};
  }

  // The sums of lane 0, right but for the step.
  Bytes Push(Step step) const {
    const wire::PushContribution lane{{0, 1}, 16, {{TableId(0), shard_, keys_, dim_}}, {}};
    auto encoder = wire::PushRequestEncoder::Make({&shard_, 1}, {&lane, 1});
    REQUIRE(encoder.ok());
    for (float& value : encoder->values(0)) value = 0.25f;
    wire::PushFields fields;
    fields.header = header_;
    fields.sequence = kSequence;
    fields.step = step;
    return ToBytes(encoder->Finish(fields));
  }
  Bytes Pull() const {
    const wire::KeyGroup group{TableId(0), shard_, keys_};
    return ToBytes(*wire::EncodePullRequest(header_, Step(0), 0, {&shard_, 1}, {&group, 1}));
  }
  Bytes Prefetch() const {
    const wire::KeyGroup group{TableId(0), shard_, keys_};
    return ToBytes(*wire::EncodePrefetchRequest(header_, Step(1), {&shard_, 1}, {&group, 1}));
  }
  Bytes Mark() const { return ToBytes(wire::EncodeMarkRequest({header_, kSequence})); }

 private:
  // Far above the worker's own, also with a bit changed: those are to name the worker's work.
  static constexpr Sequence kSequence{uint64_t{1} << 40};

  const wire::Header header_;
  const std::string cluster_id_, job_uid_;
  std::unique_ptr<DataTransport> transport_;
  std::shared_ptr<DataChannel> channel_;
  const ShardId shard_;
  std::vector<Key> keys_;
  uint32_t dim_ = 0;
};

SessionId SessionOf(ProcessCluster& cluster, const std::string& worker) {
  const auto status = cluster.scheduler().GetCluster(absl::Seconds(10));
  REQUIRE(status.ok());
  for (const NodeStatus& node : status->nodes()) {
    if (node.name() == worker) return SessionId(node.session());
  }
  FAIL("no " << worker);
  return {};
}

// A server that lives, and knows what is wrong.
void CheckAnswered(const absl::Status& s) {
  CHECK_FALSE(absl::IsUnavailable(s));
  CHECK_FALSE(absl::IsDeadlineExceeded(s));
  CHECK_FALSE(absl::IsInternal(s));
  CHECK_FALSE(absl::IsUnknown(s));
}

void SendGarbage(Client& client) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    Bytes bytes(random() % 300);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    const absl::Status s = client.Call(static_cast<DataMethod>(random() % kDataMethods), bytes);
    CHECK_FALSE(s.ok());
    CheckAnswered(s);
  }
}

// Every third prefix and bit of a message is tried, so that every byte and every bit of a byte has
// its turn; with --long every one.
size_t EachBroken() { return LongRun() ? 1 : 3; }

// Prefixes of a message, and the message with single bits changed. How many of them the server took
// for damaged on the way.
size_t SendBroken(Client& client, DataMethod method, const Bytes& whole, bool all_refused) {
  size_t damaged = 0;
  const auto send = [&](const Bytes& broken) {
    const absl::Status s = client.Call(method, broken);
    CheckAnswered(s);
    if (all_refused) CHECK_FALSE(s.ok());
    damaged += absl::IsDataLoss(s);
  };
  for (size_t n = 0; n < whole.size(); n += EachBroken()) {
    INFO("method " << static_cast<int>(method) << ", the first " << n << " bytes");
    send({whole.begin(), whole.begin() + static_cast<long>(n)});
  }
  for (size_t bit = 0; bit < whole.size() * 8; bit += EachBroken()) {
    INFO("method " << static_cast<int>(method) << ", bit " << bit);
    Bytes changed = whole;
    changed[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    send(changed);
  }
  return damaged;
}

TEST_CASE("a server that trains is sent garbage, truncated, changed, oversize and stale requests",
          "[faults][p10]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(100);
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  const JobStatus reference = Train(job);
  ProcessCluster cluster({.servers = 1,
                          .workers = 1,
                          .folder = folder->path() + "/cluster",
                          .lease_ms = 60'000});  // nobody misses who stands still meanwhile
  // Server 1 is sent nothing wrong, and stands still in step 900 of 1000, each a commit of its four
  // shards: the job ends when all requests have been sent, however long that takes.
  cluster.Start("server-1", "server.commit.append=stop@3600*1");
  cluster.AwaitRegistered();
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 10);
  JobRef ref;
  ref.set_job(id);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  REQUIRE(shards.ok());
  // Of a session that hosts lanes: nothing else is judged of others' pushes.
  Client client(*shards, SessionOf(cluster, "worker-0"), FirstShard(*shards, "server-0"),
                cluster.ServerAddress("server-0"));
  SendGarbage(client);

  // A session of nobody, of another generation, of another map.
  wire::Header wrong = client.header();
  wrong.job = JobId(id + 1);
  CHECK_FALSE(client.Open(wrong).ok());
  wrong = client.header();
  wrong.generation = Generation(7);
  CHECK(absl::IsFailedPrecondition(client.Open(wrong)));
  wrong = client.header();
  wrong.map_epoch = MapEpoch(7);
  CHECK(absl::IsFailedPrecondition(client.Open(wrong)));
  CHECK(client.Open(wrong).message().size() > 10);

  // A session that is open, and a push that only its step is wrong with: a step that no changed bit
  // turns into the one that is trained. What reads may be answered, and changes nothing.
  REQUIRE(client.Open(client.header()).ok());
  const Bytes push = client.Push(Step(uint64_t{1} << 40));
  const absl::Status too_new = client.Call(DataMethod::kPush, push);
  INFO(too_new);
  CHECK(absl::IsFailedPrecondition(too_new));
  CHECK(too_new.message().find("step 1099511627776") != std::string::npos);
  CHECK(SendBroken(client, DataMethod::kPush, push, true) >= client.value_bits() / EachBroken());
  SendBroken(client, DataMethod::kMark, client.Mark(), true);
  REQUIRE(client.Call(DataMethod::kPull, client.Pull()).ok());
  SendBroken(client, DataMethod::kPull, client.Pull(), false);
  REQUIRE(client.Call(DataMethod::kPrefetch, client.Prefetch()).ok());
  SendBroken(client, DataMethod::kPrefetch, client.Prefetch(), false);
  SendBroken(client, DataMethod::kOpenSession,
             ToBytes(wire::EncodeOpenSessionRequest(client.OpenRequest(client.header()))), false);
  CHECK(absl::IsResourceExhausted(client.Call(DataMethod::kPush, Bytes(kMaxMessageBytes + 1))));
  REQUIRE(cluster.Status(id).state() == RUNNING);

  cluster.AwaitStopped("server-1");  // so server 0 went on with it
  cluster.process("server-1").Signal(SIGCONT);
  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.rollbacks() == 0);
  CHECK(cluster.Running("server-0"));
}

}  // namespace
}  // namespace strata::testing
