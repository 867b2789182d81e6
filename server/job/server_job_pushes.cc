// Pushes: checked as a whole, and divided among the shards that they speak of.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/lane_tree.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/wire/message_codec.h"
#include "server/job/server_job.h"
#include "server/protocol/work_identity.h"

namespace strata::server {
namespace {

// The same with keys and by a ticket: the checksum covers the keys that a ticket names. Not the
// same with values on a device, whose checksum is that of the keys alone: sums that are sent again
// in the message are logged as differing (StepGate), and dropped as any repetition is.
uint64_t Fingerprint(uint64_t seed, const wire::GroupView& group, size_t keys) {
  return Mix64(seed ^ Mix64((uint64_t{group.crc32c} << 32) + group.table.value) ^ keys);
}

}  // namespace

// What the sums of one push point into.
struct ServerJob::PushData {
  Buffer bytes;
  std::shared_ptr<void> memory;
  std::vector<std::vector<Position>> positions;       // by group
  std::vector<std::vector<float>> scratch;            // by group, where values are not aligned
  std::vector<std::shared_ptr<RequestKeys>> tickets;  // that name keys
};

absl::Status ServerJob::CheckPush(const wire::PushRequestView& request) const {
  const wire::PushFields& f = request.fields;
  if (plan_.synchronous) {
    if (f.step.value == 0) {
      return absl::InvalidArgumentError("push.step 0: the job is synchronous, steps count from 1");
    }
    if (f.task.value != 0 || f.window != 0 || f.cut != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("push.task ", f.task.value, ", window ", f.window, ", cut ", f.cut,
                       ": the job is synchronous, its pushes name step and lanes"));
    }
    if (request.contributions.empty()) {
      return absl::InvalidArgumentError(
          "contributions is empty: name the lanes, with or without groups");
    }
    for (const wire::ContributionView& c : request.contributions) {
      if (IsTreeNode(c.node, plan_.lanes)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("contribution [", c.node.first, ", ", c.node.end,
                       ") is not a node of the tree over ", plan_.lanes, " lanes"));
    }
    return absl::OkStatus();
  }
  if (f.step.value != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "push.step ", f.step.value, ": the job is asynchronous, its pushes name task and window"));
  }
  if (f.lane.value >= plan_.lanes) {
    return absl::InvalidArgumentError(
        absl::StrCat("push.lane ", f.lane.value, ": the job has ", plan_.lanes, " lanes"));
  }
  if (request.contributions.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "contributions has ", request.contributions.size(), " entries: a window is one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TableSums> ServerJob::PushGroup(const wire::PushRequestView& request, size_t g,
                                               const std::shared_ptr<RequestKeys>& ticket,
                                               const std::shared_ptr<PushData>& data) const {
  const wire::GroupView& group = request.groups[g];
  TableSums sums;
  const auto& there = data->bytes.device_values();
  if (there != nullptr) sums.values_there = there->groups[g];
  const bool by_device = sums.values_there != nullptr;
  if (ticket == nullptr) {
    auto positions =
        CheckGroup(group, by_device ? wire::GroupValues::kNone : wire::GroupValues::kPerKey);
    if (!positions.ok()) return positions.status();
    data->positions[g] = *std::move(positions);
    sums.positions = data->positions[g];
  } else {
    const auto it = ticket->index.find({group.table, group.shard});
    if (it == ticket->index.end()) {
      return absl::InvalidArgumentError(absl::StrCat("group of table ", group.table.value,
                                                     ", shard ", group.shard.value,
                                                     " is not among those of the ticket"));
    }
    RequestKeys::Group& known = ticket->groups[it->second];
    const uint32_t dim = by_device ? 0 : plan_.tables[group.table.value].push_dim();
    absl::Status s = wire::CheckTicketGroup(group, known.positions.size(), known.keys_crc32c, dim);
    if (!s.ok()) return s;
    sums.positions = known.positions;
    sums.kept = &known.rows;
  }
  if (!by_device) sums.values = wire::AlignedValues(group, data->scratch[g]);
  sums.owner = data;
  return sums;
}

absl::StatusOr<std::vector<PushPart>> ServerJob::PushParts(
    const Buffer& bytes, const wire::PushRequestView& request) const {
  if (bytes.device_values() != nullptr) {
    std::vector<TableId> tables;
    for (const wire::GroupView& g : request.groups) tables.push_back(g.table);
    absl::Status s = device_.Check("push", *bytes.device_values(), tables);
    if (!s.ok()) return s;
  }
  auto data = std::make_shared<PushData>();
  data->bytes = bytes;
  auto memory = options_.memory->Take(bytes.size());
  if (!memory.ok()) return memory.status();
  data->memory = *std::move(memory);
  data->positions.resize(request.groups.size());
  data->scratch.resize(request.groups.size());
  const size_t contributions = std::max<size_t>(request.contributions.size(), 1);
  const std::map<ShardId, size_t> part_of = PartsOf(request.shards);
  std::vector<PushPart> parts(request.shards.size());
  for (PushPart& part : parts) {
    part.nodes.resize(contributions);
    part.updates.resize(contributions);
    for (ShardUpdate& u : part.updates) u.tables.resize(plan_.tables.size());
  }
  for (size_t c = 0; c < request.contributions.size(); ++c) {
    const wire::ContributionView& contribution = request.contributions[c];
    for (PushPart& part : parts) {
      part.nodes[c] = contribution.node;
      part.updates[c].examples = contribution.examples;
      part.updates[c].fingerprint = Mix64(contribution.examples);
    }
    std::shared_ptr<RequestKeys> ticket;
    if (contribution.ticket) {
      absl::MutexLock lock(&mu_);
      auto keys = FindTicket(request.fields.header.session, contribution.ticket);
      if (!keys.ok()) return keys.status();
      ticket = *std::move(keys);
      data->tickets.push_back(ticket);
    }
    for (size_t i = 0; i < contribution.group_count; ++i) {
      const size_t g = contribution.first_group + i;
      const wire::GroupView& group = request.groups[g];
      const auto part = PartOf(part_of, group.shard);
      if (!part.ok()) return part.status();
      auto sums = PushGroup(request, g, ticket, data);
      if (!sums.ok()) return sums.status();
      ShardUpdate& update = parts[*part].updates[c];
      if (update.tables[group.table.value].owner != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("table ", group.table.value, ", shard ",
                                                       group.shard.value,
                                                       ": two groups in one contribution"));
      }
      update.fingerprint = Fingerprint(update.fingerprint, group, sums->size());
      if (options_.keys != nullptr) {
        options_.keys->pushed += sums->size();
        if (sums->values_there != nullptr) options_.keys->pushed_there += sums->size();
      }
      update.tables[group.table.value] = *std::move(sums);
    }
  }
  return parts;
}

void ServerJob::Push(Buffer bytes, const wire::PushRequestView& request, DataReply reply) {
  if (absl::Status s = CheckHeader(request.fields.header, true); !s.ok()) {
    return reply(std::move(s));
  }
  auto named = Named(request.shards);
  if (!named.ok()) return reply(named.status());
  if (absl::Status s = CheckPush(request); !s.ok()) return reply(std::move(s));
  auto parts = PushParts(bytes, request);
  if (!parts.ok()) return reply(parts.status());
  const wire::PushFields& f = request.fields;
  const uint64_t work = plan_.synchronous ? WorkOfContributions(request) : WorkOfWindow(request);
  if (absl::Status s = UseSequence("push", f.header.session, f.sequence, work); !s.ok()) {
    return reply(std::move(s));
  }
  auto call = std::make_shared<PushCall>(Identity(), request.fields, request.shards.size(),
                                         std::move(reply));
  Dispatch(*call, *named,
           [&](ShardRunner& runner, size_t part) { runner.Push(call, std::move((*parts)[part])); });
}

}  // namespace strata::server
