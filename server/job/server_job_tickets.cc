// The keys of pulls and prefetches, and the tickets that keep them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "server/job/server_job.h"
#include "storage/row/table.h"

namespace strata::server {

std::map<ShardId, size_t> ServerJob::PartsOf(std::span<const ShardId> shards) {
  std::map<ShardId, size_t> part_of;
  for (size_t i = 0; i < shards.size(); ++i) part_of[shards[i]] = i;
  return part_of;
}

absl::StatusOr<size_t> ServerJob::PartOf(const std::map<ShardId, size_t>& part_of, ShardId shard) {
  const auto part = part_of.find(shard);
  if (part != part_of.end()) return part->second;
  return absl::InvalidArgumentError(absl::StrCat("group.shard ", shard.value, " is not in shards"));
}

absl::StatusOr<RequestedKeys> ServerJob::CheckKeys(std::span<const ShardId> shards,
                                                   std::span<const wire::GroupView> groups,
                                                   bool for_ticket) const {
  RequestedKeys out;
  out.keys = std::make_shared<RequestKeys>();
  out.parts.resize(shards.size());
  const std::map<ShardId, size_t> part_of = PartsOf(shards);
  for (size_t g = 0; g < groups.size(); ++g) {
    const wire::GroupView& group = groups[g];
    const auto part = PartOf(part_of, group.shard);
    if (!part.ok()) return part.status();
    auto positions = CheckGroup(group, wire::GroupValues::kNone);
    if (!positions.ok()) return positions.status();
    out.parts[*part].push_back(g);
    RequestKeys::Group& made = out.keys->groups.emplace_back();
    made.table = group.table;
    made.shard = group.shard;
    made.positions = *std::move(positions);
    made.keys_crc32c = group.crc32c;
    if (!for_ticket) continue;
    made.rows.slots.assign(made.positions.size(), storage::kNoRow);
    if (!out.keys->index.emplace(std::pair(group.table, group.shard), g).second) {
      return absl::InvalidArgumentError(absl::StrCat("table ", group.table.value, ", shard ",
                                                     group.shard.value,
                                                     ": two groups in a request for a ticket"));
    }
  }
  return out;
}

absl::StatusOr<RequestedKeys> ServerJob::TicketKeys(const wire::PullRequestView& request) const {
  if (!request.groups.empty() || request.want_ticket) {
    return absl::InvalidArgumentError(
        "pull.ticket: a pull names a ticket, or has groups and may want one");
  }
  RequestedKeys out;
  {
    absl::MutexLock lock(&mu_);
    auto keys = FindTicket(request.header.session, request.ticket);
    if (!keys.ok()) return keys.status();
    out.keys = *std::move(keys);
  }
  out.ticket = request.ticket;
  out.parts.resize(request.shards.size());
  const std::map<ShardId, size_t> part_of = PartsOf(request.shards);
  for (size_t g = 0; g < out.keys->groups.size(); ++g) {
    const auto part = PartOf(part_of, out.keys->groups[g].shard);
    if (!part.ok()) return part.status();
    out.parts[*part].push_back(g);
  }
  return out;
}

absl::StatusOr<TicketBook::KeysPtr> ServerJob::FindTicket(SessionId session,
                                                          const wire::Ticket& ticket) const {
  if (absl::Status s = Failpoint("server.ticket.find"); !s.ok()) return s;
  if (absl::Status s = CheckTakesTickets(session); !s.ok()) return s;
  return tickets_.Find(session, ticket);
}

void ServerJob::GiveTicket(const wire::Header& header, Step step, RequestedKeys& keys) {
  if (!Failpoint("server.ticket.give").ok()) return;
  auto memory = options_.memory->Take(keys.keys->TicketBytes());
  if (!memory.ok()) return;
  keys.keys->memory = *std::move(memory);
  uint32_t fingerprint = 0;
  for (const RequestKeys::Group& g : keys.keys->groups) {
    fingerprint =
        wire::ExtendFingerprint(fingerprint, g.table, g.shard, g.positions.size(), g.keys_crc32c);
  }
  std::vector<TicketBook::KeysPtr> dropped;
  {
    absl::MutexLock lock(&mu_);
    if (!CheckTakesTickets(header.session).ok()) return;  // the word came meanwhile
    keys.ticket = tickets_.Add(header.session, step, fingerprint, keys.keys, dropped);
  }
  Drop(dropped);
}

void ServerJob::Prefetch(Buffer bytes, const wire::PrefetchRequestView& request, DataReply reply) {
  if (absl::Status s = CheckHeader(request.header, true); !s.ok()) return reply(std::move(s));
  if (absl::Status s = CheckForTicket(request.header.session); !s.ok()) return reply(std::move(s));
  if ((request.step.value != 0) != plan_.synchronous) {
    return reply(absl::InvalidArgumentError(absl::StrCat(
        "prefetch.step ", request.step.value, ": the job is ",
        plan_.synchronous ? "synchronous, steps count from 1" : "asynchronous, its step is 0")));
  }
  auto named = Named(request.shards);
  if (!named.ok()) return reply(named.status());
  // The request's own bytes are not needed any more once the keys are read.
  auto memory = options_.memory->Take(bytes.size());
  if (!memory.ok()) return reply(memory.status());
  auto keys = CheckKeys(request.shards, request.groups, /*for_ticket=*/true);
  if (!keys.ok()) return reply(keys.status());
  GiveTicket(request.header, request.step, *keys);
  auto call = std::make_shared<PrefetchCall>(Identity(), *std::move(keys), std::move(reply));
  Dispatch(*call, *named, [&](ShardRunner& runner, size_t part) { runner.Prefetch(call, part); });
}

// Tickets of a step end when the last shard has committed it.
void ServerJob::EndTickets() {
  uint64_t least = ~uint64_t{0};
  for (const auto& runner : runners_) least = std::min<uint64_t>(least, runner->view().clock);
  uint64_t before = tickets_until_;
  while (before < least && !tickets_until_.compare_exchange_weak(before, least)) {
  }
  if (before >= least) return;
  std::vector<TicketBook::KeysPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    ended = tickets_.Committed(Step(least));
  }
  Drop(ended);
}

void ServerJob::Drop(const std::vector<TicketBook::KeysPtr>& tickets) {
  for (const TicketBook::KeysPtr& keys : tickets) {
    keys->dropped = true;
    if (!plan_.needs_tier && !plan_.has_hbm) continue;  // nothing was pinned
    for (const auto& runner : runners_) runner->Unpin(keys);
  }
}

}  // namespace strata::server
