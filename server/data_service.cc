#include "server/data_service.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/wire/message_codec.h"
#include "server/job/plan.h"

namespace strata::server {
namespace {

// By DataMethod: where a request has arrived, and nothing was done yet.
constexpr const char* kFailpoints[] = {"server.session", "server.pull",     "server.push",
                                       "server.mark",    "server.prefetch", "server.forward"};
static_assert(std::size(kFailpoints) == static_cast<size_t>(DataMethod::kForward) + 1);

// Whether the job's server has the shard, here.
bool Has(const ServerJob& job, ShardId shard) {
  const std::vector<ShardPlan>& shards = job.plan().shards;
  return std::any_of(shards.begin(), shards.end(),
                     [&](const ShardPlan& s) { return s.id == shard; });
}

// Several answers become one: the first error, or that of the lowest clock.
class Answers {
 public:
  using ClockOf = std::function<absl::StatusOr<Step>(const Buffer&)>;
  Answers(size_t count, ClockOf clock, DataReply reply)
      : missing_(count), clock_(std::move(clock)), reply_(std::move(reply)) {}

  void Add(absl::StatusOr<Buffer> answer) {
    std::optional<absl::StatusOr<Buffer>> all;
    {
      MutexLock lock(&mu_);
      absl::StatusOr<Step> clock = answer.ok() ? clock_(*answer) : answer.status();
      if (lowest_.ok() && (!chosen_ || !clock.ok() || *clock < *lowest_)) {
        lowest_ = std::move(clock);
        chosen_ = std::move(answer);
      }
      if (--missing_ > 0) return;
      all = std::move(chosen_);
    }
    reply_(*std::move(all));
  }

 private:
  Mutex mu_;
  size_t missing_ ABSL_GUARDED_BY(mu_);
  const ClockOf clock_;
  absl::StatusOr<Step> lowest_ ABSL_GUARDED_BY(mu_) = Step(0);
  std::optional<absl::StatusOr<Buffer>> chosen_ ABSL_GUARDED_BY(mu_);
  const DataReply reply_;
};

DataReply Gather(size_t count, Answers::ClockOf clock, DataReply reply) {
  if (count == 1) return reply;
  auto answers = std::make_shared<Answers>(count, std::move(clock), std::move(reply));
  return [answers](absl::StatusOr<Buffer> answer) { answers->Add(std::move(answer)); };
}

template <typename Reply>
absl::StatusOr<Step> ClockIn(const absl::StatusOr<Reply>& reply) {
  if (!reply.ok()) return reply.status();
  return reply->state.clock;
}

}  // namespace

void DataService::Handle(const Caller& caller, DataMethod method, Buffer request, DataReply reply) {
  const auto index = static_cast<size_t>(method);
  if (index >= counters_.size()) {
    return reply(absl::UnimplementedError(absl::StrCat("method ", index, " of the data plane")));
  }
  Counters& counters = counters_[index];
  ++counters.requests;
  counters.request_bytes += request.size();
  ++counters.in_flight;
  DataReply counted = [&counters, reply = std::move(reply)](absl::StatusOr<Buffer> answer) {
    if (answer.ok()) {
      counters.reply_bytes += answer->size();
    } else {
      ++counters.errors;
    }
    --counters.in_flight;
    reply(std::move(answer));
  };
  if (absl::Status s = CheckRole(caller, RpcOf(method)); !s.ok()) return counted(s);
  if (absl::Status s = Failpoint(kFailpoints[index]); !s.ok()) return counted(std::move(s));
  switch (method) {
    case DataMethod::kOpenSession:
      return OpenSession(caller, std::move(request), std::move(counted));
    case DataMethod::kPull:
      return Pull(caller, std::move(request), std::move(counted));
    case DataMethod::kPush:
      return Push(caller, std::move(request), std::move(counted));
    case DataMethod::kMark:
      return Mark(caller, std::move(request), std::move(counted));
    case DataMethod::kPrefetch:
      return Prefetch(caller, std::move(request), std::move(counted));
    case DataMethod::kForward:
      return Forward(caller, std::move(request), std::move(counted));
  }
}

void DataService::Add(std::shared_ptr<ServerJob> job) {
  absl::MutexLock lock(&mu_);
  jobs_[{job->plan().job, job->plan().server_index}] = std::move(job);
}

std::shared_ptr<ServerJob> DataService::Remove(JobId job, uint32_t server) {
  absl::MutexLock lock(&mu_);
  auto node = jobs_.extract({job, server});
  return node.empty() ? nullptr : std::move(node.mapped());
}

std::shared_ptr<ServerJob> DataService::Find(JobId job, uint32_t server) const {
  absl::MutexLock lock(&mu_);
  const auto it = jobs_.find({job, server});
  return it == jobs_.end() ? nullptr : it->second;
}

std::shared_ptr<ServerJob> DataService::Find(JobId job) const {
  absl::MutexLock lock(&mu_);
  std::shared_ptr<ServerJob> found;
  for (auto it = jobs_.lower_bound({job, 0}); it != jobs_.end() && it->first.job == job; ++it) {
    if (found == nullptr || (!found->is_head() && it->second->is_head())) found = it->second;
  }
  return found;
}

absl::StatusOr<DataService::JobPtr> DataService::Meant(const wire::Header& header,
                                                       std::span<const ShardId> shards) const {
  if (header.server != 0) return Find(header.job, header.server - 1);
  JobPtr found;
  ShardId of;
  {
    absl::MutexLock lock(&mu_);
    for (const ShardId shard : shards) {
      auto it = jobs_.lower_bound({header.job, 0});
      const auto end = jobs_.upper_bound({header.job, ~uint32_t{0}});
      it = std::find_if(it, end, [&](const auto& slot) { return Has(*slot.second, shard); });
      if (it == end || it->second == found) continue;
      if (found == nullptr) {
        found = it->second;
        of = shard;
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "header.server 0: shards ", of.value, " and ", shard.value, " of job ", header.job.value,
          " are of two of its servers, ", found->plan().server_index, " and ",
          it->second->plan().server_index, ", which are both here; ask each on its own"));
    }
  }
  return found == nullptr ? Find(header.job) : found;
}

absl::StatusOr<DataService::JobPtr> DataService::JobOf(const Caller& caller, const Said& said) {
  const wire::Header& header = said.header;
  auto meant = Meant(header, said.shards);
  if (!meant.ok()) return meant.status();
  JobPtr job = *std::move(meant);
  if (job == nullptr && header.server != 0 && Find(header.job) != nullptr) {
    return absl::NotFoundError(absl::StrCat("header.server ", header.server, ": shards of server ",
                                            header.server - 1, " of job ", header.job.value,
                                            " are not on this server"));
  }
  if (job == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("header.job ", header.job.value, " is not open on this server"));
  }
  const absl::Status may = gate_.Check(caller, {.rpc = said.rpc,
                                                .job = &job->plan().identity,
                                                .header = &header,
                                                .lanes = said.lanes,
                                                .as_host = said.as_host});
  if (!may.ok()) return may;
  return job;
}

absl::StatusOr<std::vector<DataService::JobPtr>> DataService::JobsOf(const Caller& caller,
                                                                     const Said& said) {
  auto job = JobOf(caller, said);
  if (!job.ok()) return job.status();
  std::vector<JobPtr> jobs = {*job};
  if (said.header.server != 0) return jobs;
  absl::MutexLock lock(&mu_);
  for (auto it = jobs_.lower_bound({said.header.job, 0});
       it != jobs_.end() && it->first.job == said.header.job; ++it) {
    if (it->second != jobs[0] && it->second->is_head()) jobs.push_back(it->second);
  }
  return jobs;
}

void DataService::OpenSession(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseOpenSessionRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto jobs = JobsOf(caller, {.rpc = Rpc::kOpenSession, .header = message->header});
  if (!jobs.ok()) return reply(jobs.status());
  const DataReply each = Gather(
      jobs->size(), [](const Buffer& b) { return ClockIn(wire::ParseOpenSessionReply(b.span())); },
      std::move(reply));
  for (const JobPtr& job : *jobs) job->OpenSession(*message, each);
}

void DataService::Pull(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParsePullRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kPull,
                            .header = message->header,
                            .as_host = message->want_ticket || message->ticket.number != 0,
                            .shards = message->shards});
  if (!job.ok()) return reply(job.status());
  (*job)->Pull(std::move(request), *message, std::move(reply));
}

void DataService::Push(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParsePushRequest(request.span());
  if (!message.ok()) return reply(message.status());
  std::vector<LaneNode> lanes;
  const wire::PushFields& fields = message->fields;
  if (caller.asked && fields.step.value == 0) {  // a window of a lane
    lanes.push_back({fields.lane.value, fields.lane.value + 1});
  } else if (caller.asked) {
    for (const wire::ContributionView& c : message->contributions) lanes.push_back(c.node);
  }
  auto job = JobOf(
      caller,
      {.rpc = Rpc::kPush, .header = fields.header, .lanes = lanes, .shards = message->shards});
  if (!job.ok()) return reply(job.status());
  (*job)->Push(std::move(request), *message, std::move(reply));
}

void DataService::Prefetch(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParsePrefetchRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kPrefetch,
                            .header = message->header,
                            .as_host = true,
                            .shards = message->shards});
  if (!job.ok()) return reply(job.status());
  (*job)->Prefetch(std::move(request), *message, std::move(reply));
}

void DataService::Mark(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseMarkRequest(request.span());
  if (!message.ok()) return reply(message.status());
  const LaneNode lane = {message->lane.value, message->lane.value + 1};
  auto jobs = JobsOf(caller, {.rpc = Rpc::kMark, .header = message->header, .lanes = {&lane, 1}});
  if (!jobs.ok()) return reply(jobs.status());
  const DataReply each = Gather(
      jobs->size(), [](const Buffer& b) { return ClockIn(wire::ParseMarkReply(b.span())); },
      std::move(reply));
  for (const JobPtr& job : *jobs) job->Mark(*message, each);
}

void DataService::Forward(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseForwardRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kForward, .header = message->fields.header});
  if (!job.ok()) return reply(job.status());
  (*job)->Forward(caller, std::move(request), *message, std::move(reply));
}

}  // namespace strata::server
