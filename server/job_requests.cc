// What arrives from workers: checked as a whole before any shard sees a part of it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/lane_tree.h"
#include "proto/core/message_codec.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "server/server_job.h"
#include "server/work_identity.h"

namespace strata::server {
namespace {

constexpr size_t kNotNamed = ~size_t{0};

// The same with keys and by a ticket: the checksum covers the keys that a ticket names.
uint64_t Fingerprint(uint64_t seed, const wire::GroupView& group, size_t keys) {
  return Mix64(seed ^ Mix64((uint64_t{group.crc32c} << 32) + group.table.value) ^ keys);
}

// Keys of a dense table are rows of its tensors.
absl::Status CheckDense(const TableSpec& table, std::span<const Position> positions) {
  size_t t = 0;
  for (const Position p : positions) {
    while (t < table.tensors.size() &&
           p.value - table.tensors[t].first.value >= table.tensors[t].Rows(table.dim()) &&
           p >= table.tensors[t].first) {
      ++t;
    }
    if (t == table.tensors.size() || p < table.tensors[t].first) {
      return absl::InvalidArgumentError(
          absl::StrCat("table ", table.id.value, " (dense): key ", p.value, " is no tensor's row"));
    }
  }
  return absl::OkStatus();
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

absl::Status ServerJob::CheckHeader(const wire::Header& header, bool session_known) const {
  if (header.generation != plan_.generation) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation ", header.generation.value, ": job ", plan_.job.value,
                     " is at generation ", plan_.generation.value));
  }
  const uint64_t epoch = map_epoch_;
  if (header.map_epoch.value != epoch) {
    return absl::FailedPreconditionError(absl::StrCat("header.map_epoch ", header.map_epoch.value,
                                                      ": job ", plan_.job.value,
                                                      " is at map epoch ", epoch));
  }
  if (!session_known) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  if (sessions_.Known(header.session)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("header.session ", header.session.value, " was not opened at incarnation ",
                   options_.incarnation, " of this server: call OpenSession first"));
}

// Last of all checks: a message that is refused uses up no number.
absl::Status ServerJob::UseSequence(const char* what, SessionId session, Sequence number,
                                    uint64_t work) {
  absl::MutexLock lock(&mu_);
  if (number.value != 0 && sessions_.Use(session, number, work)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ".sequence ", number.value,
                   number.value == 0 ? ": numbers count from 1"
                                     : absl::StrCat(" named other work in session ", session.value,
                                                    ": a retry repeats its number, new work takes "
                                                    "the next one")));
}

wire::ServerState ServerJob::Identity() const {
  wire::ServerState state;
  state.incarnation = options_.incarnation;
  state.generation = plan_.generation;
  state.map_epoch = MapEpoch(map_epoch_);
  return state;
}

absl::StatusOr<std::vector<size_t>> ServerJob::Named(const std::vector<ShardId>& shards) const {
  if (shards.empty()) return absl::InvalidArgumentError("shards is empty: name at least one");
  std::vector<size_t> named(runners_.size(), kNotNamed);
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto it =
        std::lower_bound(plan_.shards.begin(), plan_.shards.end(), shards[i],
                         [](const ShardPlan& plan, ShardId id) { return plan.id < id; });
    if (it == plan_.shards.end() || it->id != shards[i]) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", shards[i].value, " of job ", plan_.job.value,
                       " is not on this server at map epoch ", map_epoch_.load()));
    }
    size_t& part = named[static_cast<size_t>(it - plan_.shards.begin())];
    if (part != kNotNamed) {
      return absl::InvalidArgumentError(absl::StrCat("shards names ", shards[i].value, " twice"));
    }
    part = i;
  }
  return named;
}

absl::StatusOr<std::vector<Position>> ServerJob::CheckGroup(const wire::GroupView& group,
                                                            wire::GroupValues values) const {
  if (group.table.value >= plan_.tables.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group.table ", group.table.value, ": the job has ", plan_.tables.size(), " tables"));
  }
  const auto it = std::lower_bound(plan_.shards.begin(), plan_.shards.end(), group.shard,
                                   [](const ShardPlan& plan, ShardId id) { return plan.id < id; });
  if (it == plan_.shards.end() || it->id != group.shard) {
    return absl::InvalidArgumentError(
        absl::StrCat("group.shard ", group.shard.value, " is not in shards"));
  }
  const TableSpec& table = plan_.tables[group.table.value];
  std::vector<Position> positions(group.keys());
  absl::Status s =
      wire::CheckRequestGroup(group, table, values, plan_.partitioning.First(it->range.first),
                              plan_.partitioning.Last(it->range.last), positions);
  if (s.ok() && table.kind == TableKind::kDense) s = CheckDense(table, positions);
  if (!s.ok()) return s;
  return positions;
}

void ServerJob::Dispatch(Call& call, const std::vector<size_t>& named, const Post& post) {
  absl::ReaderMutexLock lock(&posting_);
  for (size_t r = 0; r < named.size(); ++r) {
    if (named[r] == kNotNamed) continue;
    if (closed_) {
      call.Fail(Closed());
    } else {
      post(*runners_[r], named[r]);
    }
  }
}

void ServerJob::OpenSession(const wire::OpenSessionRequest& request, DataReply reply) {
  if (absl::Status s = CheckHeader(request.header, false); !s.ok()) return reply(std::move(s));
  wire::OpenSessionReply answer;
  answer.state = Identity();
  uint64_t clock = ~uint64_t{0};
  for (const auto& runner : runners_) clock = std::min<uint64_t>(clock, runner->view().clock);
  answer.state.clock = Step(runners_.empty() ? 0 : clock);
  std::vector<TicketBook::KeysPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (const auto forgotten = sessions_.Open(request.header.session)) {
      ended = tickets_.Close(*forgotten);
    }
  }
  Drop(ended);
  reply(wire::EncodeOpenSessionReply(answer));
}

absl::StatusOr<std::shared_ptr<PullCall>> ServerJob::MakePull(const wire::PullRequestView& request,
                                                              const Buffer& bytes,
                                                              DataReply& reply) {
  auto keys = request.ticket ? TicketKeys(request)
                             : CheckKeys(request.shards, request.groups, request.want_ticket);
  if (!keys.ok()) return keys.status();
  uint64_t reply_bytes = 0, pulled = 0;
  std::vector<wire::ValueGroup> value_groups;
  for (const RequestKeys::Group& g : keys->keys->groups) {
    const TableSpec& table = plan_.tables[g.table.value];
    const wire::ValueCodec codec =
        table.kind == TableKind::kDense ? wire::ValueCodec::kFloat32 : request.codec;
    value_groups.push_back({g.table, g.shard, g.positions.size(), table.dim(), codec});
    pulled += g.positions.size();
    reply_bytes += uint64_t{g.positions.size()} * (8 + wire::ValueBytes(codec, table.dim()));
  }
  auto memory = options_.memory->Take(bytes.size() + reply_bytes);
  if (!memory.ok()) return memory.status();
  auto encoder = wire::PullReplyEncoder::Make(value_groups);
  if (!encoder.ok()) return encoder.status();
  if (request.want_ticket) GiveTicket(request.header, request.step, *keys);
  if (options_.keys != nullptr) options_.keys->pulled += pulled;
  const absl::Time deadline =
      options_.timer->Now() + absl::Milliseconds(std::min(request.wait_ms, kMaxWaitMs));
  return std::make_shared<PullCall>(Identity(), request.step, deadline, *std::move(encoder),
                                    static_cast<ops::RowCodec>(request.codec), *std::move(keys),
                                    *std::move(memory), std::move(reply));
}

void ServerJob::Pull(Buffer bytes, const wire::PullRequestView& request, DataReply reply) {
  // Reading needs no session: whoever may connect may evaluate and predict. A ticket is a
  // session's.
  const bool with_session = request.want_ticket || request.ticket;
  if (absl::Status s = CheckHeader(request.header, with_session); !s.ok()) {
    return reply(std::move(s));
  }
  if (request.step.value != 0 && !plan_.synchronous) {
    return reply(absl::InvalidArgumentError(absl::StrCat(
        "pull.step ", request.step.value, ": the job is asynchronous, its pulls name step 0")));
  }
  if (request.codec < wire::ValueCodec::kFloat32 || request.codec > wire::ValueCodec::kInt8) {
    return reply(
        absl::InvalidArgumentError(absl::StrCat("pull.codec ", static_cast<int32_t>(request.codec),
                                                ": it is 0 (float32), 1 (bf16) or 2 (int8)")));
  }
  auto named = Named(request.shards);
  if (!named.ok()) return reply(named.status());
  auto call = MakePull(request, bytes, reply);
  if (!call.ok()) return reply(call.status());
  Dispatch(**call, *named, [&](ShardRunner& runner, size_t part) { runner.Pull(*call, part); });
}

absl::Status ServerJob::CheckPush(const wire::PushRequestView& request) const {
  const wire::PushFields& f = request.fields;
  if (plan_.synchronous) {
    if (f.step.value == 0) {
      return absl::InvalidArgumentError("push.step 0: the job is synchronous, steps count from 1");
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
  if (ticket == nullptr) {
    auto positions = CheckGroup(group, wire::GroupValues::kPerKey);
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
    absl::Status s = wire::CheckTicketGroup(group, known.positions.size(), known.keys_crc32c,
                                            plan_.tables[group.table.value].push_dim());
    if (!s.ok()) return s;
    sums.positions = known.positions;
    sums.kept = &known.rows;
  }
  sums.values = wire::AlignedValues(group, data->scratch[g]);
  sums.owner = data;
  return sums;
}

absl::StatusOr<std::vector<PushPart>> ServerJob::PushParts(
    const Buffer& bytes, const wire::PushRequestView& request) const {
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
      if (options_.keys != nullptr) options_.keys->pushed += sums->size();
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

void ServerJob::Mark(const wire::MarkRequest& request, DataReply reply) {
  if (absl::Status s = CheckHeader(request.header, true); !s.ok()) return reply(std::move(s));
  if (plan_.synchronous) {
    return reply(absl::InvalidArgumentError("mark: the job is synchronous and has no cut markers"));
  }
  if (request.lane.value >= plan_.lanes) {
    return reply(absl::InvalidArgumentError(
        absl::StrCat("mark.lane ", request.lane.value, ": the job has ", plan_.lanes, " lanes")));
  }
  if (absl::Status s =
          UseSequence("mark", request.header.session, request.sequence, WorkOfMark(request));
      !s.ok()) {
    return reply(std::move(s));
  }
  if (runners_.empty()) {
    wire::MarkReply answer;
    answer.state = Identity();
    return reply(wire::EncodeMarkReply(answer));
  }
  std::vector<size_t> named(runners_.size());
  for (size_t i = 0; i < named.size(); ++i) named[i] = i;
  auto call = std::make_shared<MarkCall>(Identity(), runners_.size(), std::move(reply));
  const LaneMark mark = {request.task, request.window};
  Dispatch(*call, named, [&](ShardRunner& runner, size_t) {
    runner.Mark(call, request.lane.value, request.cut, mark);
  });
}

}  // namespace strata::server
