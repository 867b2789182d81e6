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
  switch (method) {
    case DataMethod::kOpenSession:
      return OpenSession(std::move(request), std::move(counted));
    case DataMethod::kPull:
      return Pull(std::move(request), std::move(counted));
    case DataMethod::kPush:
      return Push(std::move(request), std::move(counted));
    case DataMethod::kMark:
      return Mark(std::move(request), std::move(counted));
    case DataMethod::kPrefetch:
      return Prefetch(std::move(request), std::move(counted));
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

absl::StatusOr<std::shared_ptr<ServerJob>> DataService::JobOf(const wire::Header& header) const {
  if (auto job = Find(header.job)) return job;
  return absl::NotFoundError(
      absl::StrCat("header.job ", header.job.value, " is not open on this server"));
}

void DataService::OpenSession(Buffer request, DataReply reply) {
  auto message = wire::ParseOpenSessionRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(message->header);
  if (!job.ok()) return reply(job.status());
  (*job)->OpenSession(*message, std::move(reply));
}

void DataService::Pull(Buffer request, DataReply reply) {
  auto message = wire::ParsePullRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(message->header);
  if (!job.ok()) return reply(job.status());
  (*job)->Pull(std::move(request), *message, std::move(reply));
}

void DataService::Push(Buffer request, DataReply reply) {
  auto message = wire::ParsePushRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(message->fields.header);
  if (!job.ok()) return reply(job.status());
  (*job)->Push(std::move(request), *message, std::move(reply));
}

void DataService::Prefetch(Buffer request, DataReply reply) {
  auto message = wire::ParsePrefetchRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(message->header);
  if (!job.ok()) return reply(job.status());
  (*job)->Prefetch(std::move(request), *message, std::move(reply));
}

void DataService::Mark(Buffer request, DataReply reply) {
  auto message = wire::ParseMarkRequest(request.span());
  if (!message.ok()) return reply(message.status());
  auto job = JobOf(message->header);
  if (!job.ok()) return reply(job.status());
  (*job)->Mark(*message, std::move(reply));
}

}  // namespace strata::server
