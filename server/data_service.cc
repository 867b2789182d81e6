#include "server/data_service.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/message_codec.h"

namespace strata::server {

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
  }
}

void DataService::Add(std::shared_ptr<ServerJob> job) {
  absl::MutexLock lock(&mu_);
  jobs_[job->plan().job] = std::move(job);
}

std::shared_ptr<ServerJob> DataService::Remove(JobId job) {
  absl::MutexLock lock(&mu_);
  auto node = jobs_.extract(job);
  return node.empty() ? nullptr : std::move(node.mapped());
}

std::shared_ptr<ServerJob> DataService::Find(JobId job) const {
  absl::MutexLock lock(&mu_);
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : it->second;
}

absl::StatusOr<std::shared_ptr<ServerJob>> DataService::JobOf(const Caller& caller,
                                                              const Said& said) {
  auto job = Find(said.header.job);
  if (job == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("header.job ", said.header.job.value, " is not open on this server"));
  }
  const absl::Status may = gate_.Check(caller, {.rpc = said.rpc,
                                                .job = &job->plan().identity,
                                                .header = &said.header,
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
  if (caller.asked) {
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

}  // namespace strata::server
