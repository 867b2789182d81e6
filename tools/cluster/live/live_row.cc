#include "tools/cluster/live/live_row.h"

#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/id_source.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"

namespace strata {
namespace {

// The shard that holds a partition; nullptr: none is placed.
const ShardStatus* ShardOf(const JobShards& shards, PartitionId partition) {
  for (const ShardStatus& s : shards.shards()) {
    if (s.place().first_partition() <= partition.value &&
        partition.value <= s.place().last_partition()) {
      return &s;
    }
  }
  return nullptr;
}

// A call, whose errors name the server.
absl::StatusOr<Buffer> Ask(DataChannel& channel, const ShardServer& server, DataMethod method,
                           Buffer request, absl::Duration timeout) {
  auto reply = channel.CallAndWait(method, std::move(request), timeout);
  if (reply.ok()) return reply;
  return absl::Status(reply.status().code(),
                      absl::StrCat("server ", server.name(), " at ", server.data_address(), ": ",
                                   reply.status().message()));
}

}  // namespace

absl::StatusOr<LiveRow> ReadLiveRow(const JobShards& shards, const TableSpec& table, Key key,
                                    DataTransport& transport, const Caller& caller,
                                    absl::Duration timeout) {
  const Partitioning partitioning(shards.spec().spec().storage().partitions());
  const ShardStatus* shard = ShardOf(shards, partitioning.Of(table.PositionOfKey(key)));
  if (shard == nullptr || static_cast<int>(shard->place().server()) >= shards.servers_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", shards.name(), ": no server holds shards of it now"));
  }
  const ShardServer& server = shards.servers(static_cast<int>(shard->place().server()));
  if (server.data_address().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", server.name(), " does not hold shard ", shard->place().shard(),
                     " of job ", shards.name(), " open now; try again when it does"));
  }
  const ShardId id(shard->place().shard());
  const Key keys[] = {key};
  const wire::KeyGroup group = {table.id, id, keys};
  const auto identity = ParseJobIdentity(shards.cluster_id(), shards.job_uid());
  if (!identity) {
    return absl::InternalError(absl::StrCat("the scheduler does not say which job ", shards.name(),
                                            " is (cluster \"", shards.cluster_id(), "\", UID \"",
                                            shards.job_uid(), "\")"));
  }
  // A process may answer for several of the job's servers.
  const wire::Header header =
      wire::Header{JobId(shards.job()), SessionId(IdSource::System()->Draw().low),
                   Generation(shards.generation()), MapEpoch(shards.map_epoch())}
          .To(shard->place().server());
  auto request = wire::EncodePullRequest(header, Step(0), 0, {&id, 1}, {&group, 1});
  if (!request.ok()) return request.status();
  // Numbers of jobs are every cluster's own: whose job it is, the server says when a session is
  // opened, and it was the same opening of the job that answered the pull.
  const auto channel = transport.Connect({server.data_address(), server.name()}, caller);
  auto introduced =
      Ask(*channel, server, DataMethod::kOpenSession,
          wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, *identity)), timeout);
  if (!introduced.ok()) return introduced.status();
  const auto opened = wire::ParseOpenSessionReply(introduced->span());
  if (!opened.ok()) return opened.status();
  auto bytes = Ask(*channel, server, DataMethod::kPull, *std::move(request), timeout);
  if (!bytes.ok()) return bytes.status();
  auto reply = wire::ParsePullReply(bytes->span());
  if (!reply.ok()) return reply.status();
  if (reply->state.incarnation != opened->state.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", server.name(), " began anew just now; try again"));
  }
  if (reply->outcome != wire::PullOutcome::kServed || reply->groups.size() != 1) {
    return absl::InternalError(
        absl::StrCat("server ", server.name(), " did not answer what was asked"));
  }
  if (absl::Status s = wire::CheckReplyGroup(reply->groups[0], table.id, id, 1, table.dim());
      !s.ok()) {
    return s;
  }
  LiveRow row;
  for (size_t i = 0; i < table.dim(); ++i) row.weights.push_back(reply->groups[0].value(i));
  row.server = server.name();
  row.shard = id.value;
  row.clock = reply->state.clock.value;
  return row;
}

}  // namespace strata
