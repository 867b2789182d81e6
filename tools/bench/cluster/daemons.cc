#include "tools/bench/cluster/daemons.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "tools/cli/inspect/top_scrape.h"

namespace strata::bench {
namespace {

constexpr absl::Duration kCall = absl::Seconds(30);
constexpr char kOperator[] = "bench";

Role RoleOf(const std::string& name) {
  if (name == "scheduler") return Role::kScheduler;
  return absl::StartsWith(name, "server") ? Role::kServer : Role::kWorker;
}

std::string ProgramOf(Role role) {
  const std::string name(RoleName(role));
  return BinaryBeside(absl::StrCat(name, "/strata-", name));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemons>> Daemons::Start(const DaemonsOptions& options) {
  std::filesystem::create_directories(options.directory);
  auto daemons = std::unique_ptr<Daemons>(new Daemons(options));
  if (absl::Status s = daemons->Open(); !s.ok()) return s;
  return daemons;
}

absl::Status Daemons::Open() {
  if (o_.secure) {
    absl::Status s = ChildProcess::Run(
        {BinaryBeside("tools/cli/strata"), "certs", "init", "--dir", folder("certs")});
    if (!s.ok()) return s;
  }
  if (absl::Status s = StartOne("scheduler"); !s.ok()) return s;
  auto tls = Tls(Role::kOperator, kOperator);
  if (!tls.ok()) return tls.status();
  tls_ = *tls;
  client_ = MakeGrpcSchedulerClient(address_, tls_);
  for (int i = 0; i < o_.servers; ++i) {
    if (absl::Status s = StartOne(absl::StrCat("server-", i)); !s.ok()) return s;
  }
  for (int i = 0; i < o_.workers; ++i) {
    if (absl::Status s = StartOne(absl::StrCat("worker-", i)); !s.ok()) return s;
  }
  return AwaitRegistered();
}

// Its folder; issued where there is none yet.
absl::StatusOr<std::string> Daemons::Certificate(Role role, const std::string& name) {
  const std::string current = CurrentFolder(folder("certs"), role, name);
  if (std::filesystem::exists(current)) return current;
  const absl::Status issued =
      ChildProcess::Run({BinaryBeside("tools/cli/strata"), "certs", "issue",
                         std::string(RoleName(role)), name, "--dir", folder("certs")});
  if (!issued.ok()) return issued;
  return current;
}

absl::StatusOr<std::shared_ptr<ProcessTls>> Daemons::Tls(Role role, const std::string& name) {
  if (!o_.secure) return std::shared_ptr<ProcessTls>();
  auto certs = Certificate(role, name);
  if (!certs.ok()) return certs.status();
  return ProcessTls::Open({.folder = *certs, .role = role, .name = name});
}

absl::Status Daemons::StartOne(const std::string& name) {
  const Role role = RoleOf(name);
  const std::string address_file = folder(name) + "-address";
  std::vector<std::string> command = {ProgramOf(role), "--dir", folder(name), "--address-file",
                                      address_file};
  if (role == Role::kScheduler) {
    const std::string listen = address_.empty() ? "127.0.0.1:0" : address_;
    command.insert(command.end(), {"--listen", listen, "--lease-ms", absl::StrCat(o_.lease_ms)});
  } else {
    command.insert(command.end(), {"--scheduler", address_, "--name", name});
  }
  if (role == Role::kWorker) {
    command.insert(command.end(), {"--metrics-listen", "127.0.0.1:0"});
  }
  if (o_.secure) {
    auto certs = Certificate(role, role == Role::kScheduler ? "main" : name);
    if (!certs.ok()) return certs.status();
    command.insert(command.end(), {"--certs", *certs});
  }
  std::filesystem::remove(address_file);
  auto process = ChildProcess::Start(command);
  if (!process.ok()) return process.status();
  processes_[name] = *std::move(process);
  auto address = ReadAddressFile(address_file);
  if (!address.ok()) return address.status();
  if (role == Role::kScheduler) address_ = *address;
  if (role == Role::kWorker) metrics_[name] = *address;
  return absl::OkStatus();
}

absl::Status Daemons::AwaitRegistered() {
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (absl::Now() < give_up) {
    const auto cluster = client_->GetCluster(kCall);
    int there = 0;
    if (!cluster.ok()) continue;  // a scheduler that starts
    for (const NodeStatus& node : cluster->nodes()) {
      const auto process = processes_.find(node.name());
      there += node.alive() && process != processes_.end() && node.pid() == process->second->pid();
    }
    if (there == o_.servers + o_.workers) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(5));
  }
  return absl::InternalError("the cluster's processes do not register");
}

absl::StatusOr<uint64_t> Daemons::Submit(TrainingJob job) {
  SubmitRequest submit;
  *submit.mutable_job() = std::move(job);
  if (absl::Status s = ResolveJob(*submit.mutable_job()); !s.ok()) return s;
  submit.set_request_id("bench");
  auto reply = client_->Submit(submit, kCall);
  if (!reply.ok()) return reply.status();
  return reply->job();
}

TrainWindow Daemons::Totals() {
  TrainWindow totals;
  for (const auto& [name, address] : metrics_) {
    auto values = Scrape(address, absl::Seconds(5), tls_ == nullptr ? nullptr : tls_->source());
    if (!values.ok()) continue;
    totals.examples += (*values)["strata_worker_examples_total"];
    for (size_t i = 0; i < kStages; ++i) {
      const std::string stage = absl::StrCat(kStageNames[i], "_seconds_total");
      totals.stages.path[i] += (*values)["strata_worker_step_" + stage];
      totals.stages.ahead[i] += (*values)["strata_worker_ahead_" + stage];
    }
  }
  return totals;
}

absl::Status Daemons::Await(uint64_t examples, absl::Duration patience) {
  const absl::Time give_up = absl::Now() + patience;
  for (;;) {
    const double seen = Totals().examples;
    if (seen >= static_cast<double>(examples)) return absl::OkStatus();
    if (absl::Now() > give_up) {
      return absl::InternalError(absl::StrCat("the job has seen ", seen, " examples and not ",
                                              examples, " after ", absl::FormatDuration(patience)));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

absl::StatusOr<TrainWindow> Daemons::Measure(double seconds) {
  const TrainWindow before = Totals();
  const absl::Time from = absl::Now();
  absl::SleepFor(absl::Seconds(seconds));
  TrainWindow after = Totals();
  after.seconds = absl::ToDoubleSeconds(absl::Now() - from);
  after.examples -= before.examples;
  after.stages = after.stages - before.stages;
  if (after.examples > 0) return after;
  return absl::InternalError("the workers trained on nothing");
}

}  // namespace strata::bench
