#include "server/data_service.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/wire/message_codec.h"

namespace strata::server {
namespace {

// By DataMethod: where a request has arrived, and nothing was done yet.
constexpr const char* kFailpoints[] = {"server.session", "server.pull",     "server.push",
                                       "server.mark",    "server.prefetch", "server.forward"};
static_assert(std::size(kFailpoints) == static_cast<size_t>(DataMethod::kForward) + 1);

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

absl::StatusOr<std::shared_ptr<ServerJob>> DataService::JobOf(const Caller& caller,
                                                              const Said& said) {
  const wire::Header& header = said.header;
  auto job = header.server == 0 ? Find(header.job) : Find(header.job, header.server - 1);
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

void DataService::OpenSession(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseOpenSessionRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kOpenSession, .header = message->header});
  if (!job.ok()) return reply(job.status());
  (*job)->OpenSession(*message, std::move(reply));
}

void DataService::Pull(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParsePullRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kPull,
                            .header = message->header,
                            .as_host = message->want_ticket || message->ticket.number != 0});
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
  auto job = JobOf(caller, {.rpc = Rpc::kPush, .header = message->fields.header, .lanes = lanes});
  if (!job.ok()) return reply(job.status());
  (*job)->Push(std::move(request), *message, std::move(reply));
}

void DataService::Prefetch(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParsePrefetchRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kPrefetch, .header = message->header, .as_host = true});
  if (!job.ok()) return reply(job.status());
  (*job)->Prefetch(std::move(request), *message, std::move(reply));
}

void DataService::Mark(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseMarkRequest(request.span());
  if (!message.ok()) return reply(message.status());
  const LaneNode lane = {message->lane.value, message->lane.value + 1};
  auto job = JobOf(caller, {.rpc = Rpc::kMark, .header = message->header, .lanes = {&lane, 1}});
  if (!job.ok()) return reply(job.status());
  (*job)->Mark(*message, std::move(reply));
}

void DataService::Forward(const Caller& caller, Buffer request, DataReply reply) {
  auto message = wire::ParseForwardRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(caller, {.rpc = Rpc::kForward, .header = message->fields.header});
  if (!job.ok()) return reply(job.status());
  (*job)->Forward(caller, std::move(request), *message, std::move(reply));
}

}  // namespace strata::server
