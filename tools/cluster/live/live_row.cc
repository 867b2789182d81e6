#include "tools/cluster/live/live_row.h"

#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
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

}  // namespace

absl::StatusOr<LiveRow> ReadLiveRow(const JobShards& shards, const TableSpec& table, Key key,
                                    DataTransport& transport, absl::Duration timeout) {
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
  const wire::Header header = {JobId(shards.job()), SessionId(0), Generation(shards.generation()),
                               MapEpoch(shards.map_epoch())};
  auto request = wire::EncodePullRequest(header, Step(0), 0, {&id, 1}, {&group, 1});
  if (!request.ok()) return request.status();
  auto bytes = transport.Connect(server.data_address())
                   ->CallAndWait(DataMethod::kPull, *std::move(request), timeout);
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat("server ", server.name(), " at ", server.data_address(), ": ",
                                     bytes.status().message()));
  }
  auto reply = wire::ParsePullReply(bytes->span());
  if (!reply.ok()) return reply.status();
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
