// Promise P10: what a server is sent, however broken, neither ends it nor changes its state.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/buffer.h"
#include "proto/core/ids.h"
#include "proto/core/message.h"
#include "proto/core/message_codec.h"
#include "proto/core/message_limits.h"
#include "proto/runtime/grpc_transport.h"
#include "proto/runtime/transport.h"
#include "tests/e2e/process_cluster.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/scratch_folder.h"

namespace strata::testing {
namespace {

TEST_CASE("a server that trains is sent garbage, truncated, oversize and stale requests",
          "[faults][p10]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  TrainingJob job = SmallJob(folder->path());
  job.mutable_spec()->mutable_training()->set_epochs(200);
  EmbeddedOptions embedded;
  embedded.job = job;
  auto reference = RunEmbedded(embedded);
  REQUIRE(reference.ok());
  ProcessCluster cluster({.servers = 1, .workers = 1, .folder = folder->path() + "/cluster"});
  const uint64_t id = cluster.Submit(job);
  cluster.AwaitStep(id, 10);
  auto transport = MakeGrpcTransport();
  auto channel = transport->Connect(cluster.ServerAddress("server-0"));
  const auto call = [&](DataMethod method, std::vector<uint8_t> bytes) {
    return channel->CallAndWait(method, Buffer::CopyOf(bytes), absl::Seconds(20)).status();
  };

  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    std::vector<uint8_t> bytes(random() % 300);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    const absl::Status s = call(static_cast<DataMethod>(random() % kDataMethods), bytes);
    CHECK_FALSE(s.ok());
    CHECK_FALSE(absl::IsUnavailable(s));
    CHECK_FALSE(absl::IsDeadlineExceeded(s));
    CHECK_FALSE(absl::IsInternal(s));
  }

  // A session of nobody, of another generation, of another map.
  const auto open = [&](wire::Header header) {
    const Buffer message = wire::EncodeOpenSessionRequest({header});
    return call(DataMethod::kOpenSession, {message.span().begin(), message.span().end()});
  };
  const wire::Header right = {JobId(id), SessionId(99), Generation(1), MapEpoch(1)};
  wire::Header wrong = right;
  wrong.job = JobId(id + 1);
  CHECK_FALSE(open(wrong).ok());
  wrong = right;
  wrong.generation = Generation(7);
  CHECK(absl::IsFailedPrecondition(open(wrong)));
  wrong = right;
  wrong.map_epoch = MapEpoch(7);
  CHECK(absl::IsFailedPrecondition(open(wrong)));
  CHECK(open(wrong).message().size() > 10);

  // Every prefix and every single changed byte of a message that is right.
  const Buffer message = wire::EncodeOpenSessionRequest({wrong});
  const std::vector<uint8_t> whole(message.span().begin(), message.span().end());
  for (size_t n = 0; n < whole.size(); ++n) {
    CHECK_FALSE(
        call(DataMethod::kPush, {whole.begin(), whole.begin() + static_cast<long>(n)}).ok());
    CHECK_FALSE(
        call(DataMethod::kPull, {whole.begin(), whole.begin() + static_cast<long>(n)}).ok());
  }
  CHECK(absl::IsResourceExhausted(
      call(DataMethod::kPush, std::vector<uint8_t>(kMaxMessageBytes + 1))));

  const JobStatus end = cluster.AwaitEnd(id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference->model_hash());
  CHECK(end.rollbacks() == 0);
  CHECK(cluster.Running("server-0"));
}

}  // namespace
}  // namespace strata::testing
