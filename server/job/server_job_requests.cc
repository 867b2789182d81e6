// What arrives from workers: checked as a whole before any shard sees a part of it. Pushes are in
// server_job_pushes.cc.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/lane_tree.h"
#include "proto/core/mutation.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/core/uid.h"
#include "proto/wire/message_codec.h"
#include "server/job/server_job.h"
#include "server/protocol/work_identity.h"

namespace strata::server {
namespace {

constexpr size_t kNotNamed = ~size_t{0};

// What somebody took for an id.
std::string Shown(const std::string& id) { return absl::CHexEscape(id.substr(0, 64)); }

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

absl::Status CheckCodec(const char* field, wire::ValueCodec codec) {
  if (codec >= wire::ValueCodec::kFloat32 && codec <= wire::ValueCodec::kInt8) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " ", static_cast<int32_t>(codec),
                                                 ": it is 0 (float32), 1 (bf16) or 2 (int8)"));
}

absl::Status CheckCodecs(const wire::PullCodecs& codecs) {
  if (absl::Status s = CheckCodec("pull.codec", codecs.others); !s.ok()) return s;
  for (const wire::ValueCodec codec : codecs.of_table) {
    if (absl::Status s = CheckCodec("pull.codecs", codec); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServerJob::CheckHeader(const wire::Header& header, bool session_known) const {
  if (header.generation != plan_.generation && !STRATA_MUTATION("bsp.other_generation_taken")) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation ", header.generation.value, ": job ", plan_.job.value,
                     " is at generation ", plan_.generation.value));
  }
  const uint64_t epoch = map_epoch_;
  if (header.map_epoch.value != epoch && !STRATA_MUTATION("bsp.other_epoch_taken")) {
    return absl::FailedPreconditionError(absl::StrCat("header.map_epoch ", header.map_epoch.value,
                                                      ": job ", plan_.job.value,
                                                      " is at map epoch ", epoch));
  }
  if (absl::Status s = CheckHead(); !s.ok()) return s;
  if (!session_known) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  if (sessions_.Known(header.session) || STRATA_MUTATION("session.unknown_taken"))
    return absl::OkStatus();
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
  if (request.cluster_id != plan_.identity.cluster.text() ||
      (request.job_uid != plan_.identity.job.text() &&
       !STRATA_MUTATION("identity.session_of_another"))) {
    return reply(absl::NotFoundError(
        absl::StrCat("header.job ", request.header.job.value, " on this server is ",
                     Describe(plan_.identity), "; the request means job \"", Shown(request.job_uid),
                     "\" of cluster \"", Shown(request.cluster_id), "\"")));
  }
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
  reply(wire::EncodeOpenSessionReply(answer).With(device_.values()));
}

absl::Status ServerJob::CheckThere(const wire::PullRequestView& request, const DeviceValues* there,
                                   const RequestKeys& keys) const {
  if (there == nullptr) return absl::OkStatus();
  std::vector<TableId> tables;
  for (const RequestKeys::Group& g : keys.groups) tables.push_back(g.table);
  if (absl::Status s = device_.Check("pull", *there, tables); !s.ok()) return s;
  for (size_t g = 0; g < tables.size(); ++g) {
    const wire::ValueCodec codec = request.codec.Of(tables[g]);
    if (there->groups[g] == nullptr || codec == wire::ValueCodec::kFloat32) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("pull.codec ", static_cast<int32_t>(codec),
                     ": a pull into a device's memory is of codec 0 (float32)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PullCall>> ServerJob::MakePull(const wire::PullRequestView& request,
                                                              const Buffer& bytes,
                                                              DataReply& reply) {
  auto keys = request.ticket ? TicketKeys(request)
                             : CheckKeys(request.shards, request.groups, request.want_ticket);
  if (!keys.ok()) return keys.status();
  const std::vector<RequestKeys::Group>& groups = keys->keys->groups;
  const auto& there = bytes.device_values();
  if (absl::Status s = CheckThere(request, there.get(), *keys->keys); !s.ok()) return s;
  uint64_t reply_bytes = 0, pulled = 0, pulled_there = 0;
  std::vector<wire::ValueGroup> value_groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    const RequestKeys::Group& g = groups[i];
    const TableSpec& table = plan_.tables[g.table.value];
    const bool by_device = there != nullptr && there->groups[i] != nullptr;
    const wire::ValueCodec codec =
        table.kind == TableKind::kDense ? wire::ValueCodec::kFloat32 : request.codec.Of(g.table);
    const uint32_t dim = by_device ? 0 : table.dim();
    value_groups.push_back({g.table, g.shard, g.positions.size(), dim, codec});
    pulled += g.positions.size();
    if (by_device) pulled_there += g.positions.size();
    reply_bytes += uint64_t{g.positions.size()} * (8 + wire::ValueBytes(codec, dim));
  }
  auto memory = options_.memory->Take(bytes.size() + reply_bytes);
  if (!memory.ok()) return memory.status();
  auto encoder = wire::PullReplyEncoder::Make(value_groups);
  if (!encoder.ok()) return encoder.status();
  if (request.want_ticket) GiveTicket(request.header, request.step, *keys);
  if (options_.keys != nullptr) {
    options_.keys->pulled += pulled;
    options_.keys->pulled_there += pulled_there;
  }
  const absl::Time deadline =
      options_.timer->Now() + absl::Milliseconds(std::min(request.wait_ms, kMaxWaitMs));
  return std::make_shared<PullCall>(Identity(), request.step, deadline, *std::move(encoder),
                                    request.codec, *std::move(keys), there, *std::move(memory),
                                    std::move(reply));
}

void ServerJob::Pull(Buffer bytes, const wire::PullRequestView& request, DataReply reply) {
  // Reading needs no session: whoever may connect may evaluate and predict. A ticket is a
  // session's.
  const bool with_session = request.want_ticket || request.ticket;
  if (absl::Status s = CheckHeader(request.header, with_session); !s.ok()) {
    return reply(std::move(s));
  }
  if (with_session) {
    absl::Status s = CheckForTicket(request.header.session);
    if (!s.ok()) return reply(std::move(s));
  }
  if (request.step.value != 0 && !plan_.synchronous) {
    return reply(absl::InvalidArgumentError(absl::StrCat(
        "pull.step ", request.step.value, ": the job is asynchronous, its pulls name step 0")));
  }
  if (absl::Status s = CheckCodecs(request.codec); !s.ok()) return reply(std::move(s));
  auto named = Named(request.shards);
  if (!named.ok()) return reply(named.status());
  auto call = MakePull(request, bytes, reply);
  if (!call.ok()) return reply(call.status());
  Dispatch(**call, *named, [&](ShardRunner& runner, size_t part) { runner.Pull(*call, part); });
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
  auto call = std::make_shared<MarkCall>(Identity(), runners_.size(), std::move(reply),
                                         request.header.session);
  const LaneMark mark = {request.task, request.window};
  Dispatch(*call, named, [&](ShardRunner& runner, size_t) {
    runner.Mark(call, request.lane.value, request.cut, mark);
  });
}

}  // namespace strata::server
