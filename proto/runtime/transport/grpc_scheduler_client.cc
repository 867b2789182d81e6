#include "proto/runtime/transport/grpc_scheduler_client.h"

#include <glog/logging.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/scheduler_handshake.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_server.h"
#include "proto/runtime/transport/grpc_status.h"
#include "proto/strata/control.grpc.pb.h"

namespace strata {
namespace {

// With the second in which a command looks why (WhyNoHandshake): five, where nobody is.
constexpr absl::Duration kConnectTimeout = absl::Seconds(4);
// How often a process that was never answered looks why.
constexpr absl::Duration kLookAgain = absl::Seconds(10);

class GrpcSchedulerClient : public SchedulerClient {
 public:
  // `process`: as MakeNodeSchedulerClient's; empty: it is none.
  GrpcSchedulerClient(const std::string& address, std::shared_ptr<ProcessTls> tls,
                      KnownLease* lease, const std::string& process)
      : address_(address),
        process_(process),
        tls_(std::move(tls)),
        lease_(lease == nullptr ? &own_lease_ : lease),
        link_(std::make_shared<Link>(address, tls_.get(), lease_->get())) {}

  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration timeout) override {
    auto directive = Call(&Scheduler::Stub::Sync, report, timeout);
    if (process_.empty()) return directive;
    if (absl::IsUnavailable(directive.status())) return Explained(directive.status());
    MutexLock lock(&mu_);
    never_answered_ = false;
    return directive;
  }
  absl::StatusOr<SubmitReply> Submit(const SubmitRequest& request,
                                     absl::Duration timeout) override {
    return Call(&Scheduler::Stub::Submit, request, timeout);
  }
  absl::StatusOr<JobStatus> GetJob(const JobRef& ref, absl::Duration timeout) override {
    return Call(&Scheduler::Stub::GetJob, ref, timeout);
  }
  absl::StatusOr<ListJobsReply> ListJobs(absl::Duration timeout) override {
    return Call(&Scheduler::Stub::ListJobs, ListJobsRequest(), timeout);
  }
  absl::StatusOr<JobStatus> CancelJob(const JobRef& ref, absl::Duration timeout) override {
    return Call(&Scheduler::Stub::CancelJob, ref, timeout);
  }
  absl::StatusOr<CreateCheckpointReply> CreateCheckpoint(const CreateCheckpointRequest& request,
                                                         absl::Duration timeout) override {
    return Call(&Scheduler::Stub::CreateCheckpoint, request, timeout);
  }
  absl::StatusOr<ClusterStatus> GetCluster(absl::Duration timeout) override {
    return Call(&Scheduler::Stub::GetCluster, GetClusterRequest(), timeout);
  }
  absl::StatusOr<JobShards> GetShards(const JobRef& ref, absl::Duration timeout) override {
    return Call(&Scheduler::Stub::GetShards, ref, timeout);
  }
  absl::StatusOr<GetEventsReply> GetEvents(const GetEventsRequest& request,
                                           absl::Duration timeout) override {
    return Call(&Scheduler::Stub::GetEvents, request, timeout);
  }
  absl::StatusOr<SettleQuarantineReply> SettleQuarantine(const SettleQuarantineRequest& request,
                                                         absl::Duration timeout) override {
    return Call(&Scheduler::Stub::SettleQuarantine, request, timeout);
  }

 private:
  // A connection, and the lease that it was made for.
  struct Link {
    Link(const std::string& address, ProcessTls* tls, absl::Duration for_lease)
        : lease(for_lease),
          met(std::make_shared<MetPeer>()),
          channel(grpc::CreateCustomChannel(
              address,
              tls == nullptr ? grpc::InsecureChannelCredentials()
                             : tls->ChannelTo(Role::kScheduler, std::nullopt, met),
              Arguments(tls, for_lease))),
          stub(Scheduler::NewStub(channel)) {}

    static grpc::ChannelArguments Arguments(const ProcessTls* tls, absl::Duration for_lease) {
      grpc::ChannelArguments arguments = GrpcChannelArguments(for_lease);
      if (tls != nullptr) arguments.SetSslTargetNameOverride(tls->HostOf(Role::kScheduler));
      return arguments;
    }

    const absl::Duration lease;
    const std::shared_ptr<MetPeer> met;
    const std::shared_ptr<grpc::Channel> channel;
    const std::unique_ptr<Scheduler::Stub> stub;
  };

  // Another one where the scheduler that was met counts no more, or this process has another
  // certificate: its handshake asks anew.
  std::shared_ptr<Link> link() {
    MutexLock lock(&mu_);
    if (tls_ != nullptr && !tls_->CheckMet(*link_->met).ok()) {
      link_ = std::make_shared<Link>(address_, tls_.get(), link_->lease);
    }
    return link_;
  }

  // What the call was answered with says the lease. A connection is made for one lease: another
  // lease needs another one.
  void Follow(const grpc::ClientContext& context) {
    const auto& told = context.GetServerInitialMetadata();
    const auto said = told.find(kLeaseMetadata);
    uint32_t lease_ms = 0;
    if (said == told.end() ||
        !absl::SimpleAtoi(absl::string_view(said->second.data(), said->second.size()), &lease_ms) ||
        lease_ms == 0) {
      return;
    }
    lease_->Learn(lease_ms);
    MutexLock lock(&mu_);
    if (link_->lease != lease_->get()) {
      link_ = std::make_shared<Link>(address_, tls_.get(), lease_->get());
    }
  }

  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (Scheduler::Stub::*method)(grpc::ClientContext*,
                                                                     const Request&, Reply*),
                             const Request& request, absl::Duration timeout) {
    const gpr_timespec deadline = GrpcDeadline(timeout);
    const std::shared_ptr<Link> to = link();
    // Without a connection the call would fail at once, or wait on while the scheduler restarts and
    // then say DEADLINE_EXCEEDED: whoever asks must be able to tell "not there" from "slow".
    // A call may take long (a checkpoint), being there does not.
    const absl::Duration patience = std::min(timeout, kConnectTimeout);
    if (!to->channel->WaitForConnected(GrpcDeadline(patience))) {
      return NotThere(patience, "");
    }
    grpc::ClientContext context;
    context.set_deadline(deadline);
    Reply reply;
    const grpc::Status status = ((*to->stub).*method)(&context, request, &reply);
    if (tls_ != nullptr) {
      if (absl::Status s = tls_->CheckAnswered(context); !s.ok()) {
        return NotThere(timeout, s.message());
      }
    }
    Follow(context);
    if (status.ok()) return reply;
    absl::Status error = FromGrpc(status);
    // Of a connection that breaks gRPC says UNKNOWN ("Stream removed") as well; we never do.
    if (absl::IsUnavailable(error) || absl::IsUnknown(error))
      return NotThere(timeout, error.message());
    // gRPC's own answer to a call that nobody serves there, without a word.
    if (absl::IsUnimplemented(error) && error.message().empty()) {
      return NotThere(timeout,
                      "what listens there knows no such call: it is a server or a worker, or an "
                      "older scheduler; give --scheduler HOST:PORT as the scheduler says it when "
                      "it starts");
    }
    return error;
  }

  absl::Status Explained(const absl::Status& error) {
    {
      MutexLock lock(&mu_);
      const absl::Time now = Clock::Real()->Now();
      if (!never_answered_) return error;
      if (now < look_again_) return Joined(error, why_);
      look_again_ = now + kLookAgain;
    }
    const absl::Status why =
        WhyNoHandshake(address_, tls_ == nullptr ? nullptr : tls_->source(), process_);
    MutexLock lock(&mu_);
    if (!why.ok() && why.message() != why_) {
      LOG(ERROR) << "scheduler_not_reached error=\"" << why.message() << "\" next=retry";
    }
    why_ = std::string(why.message());
    return Joined(error, why_);
  }
  static absl::Status Joined(const absl::Status& error, const std::string& why) {
    if (why.empty()) return error;
    return absl::UnavailableError(absl::StrCat(error.message(), ": ", why));
  }

  absl::Status NotThere(absl::Duration timeout, absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat("no scheduler answers at ", address_,
                     why.empty() ? absl::StrCat(" within ", absl::FormatDuration(timeout))
                                 : absl::StrCat(": ", why)));
  }

  const std::string address_;
  const std::string process_;
  const std::shared_ptr<ProcessTls> tls_;
  KnownLease own_lease_;
  KnownLease* const lease_;
  Mutex mu_;
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(mu_);
  bool never_answered_ ABSL_GUARDED_BY(mu_) = true;
  absl::Time look_again_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::string why_ ABSL_GUARDED_BY(mu_);  // by the last look; empty: nothing
};

}  // namespace

std::unique_ptr<SchedulerClient> MakeGrpcSchedulerClient(const std::string& address,
                                                         std::shared_ptr<ProcessTls> tls,
                                                         KnownLease* lease) {
  return std::make_unique<GrpcSchedulerClient>(address, std::move(tls), lease, "");
}

std::unique_ptr<SchedulerClient> MakeNodeSchedulerClient(const std::string& address,
                                                         std::shared_ptr<ProcessTls> tls,
                                                         KnownLease* lease,
                                                         const std::string& process) {
  return std::make_unique<GrpcSchedulerClient>(address, std::move(tls), lease, process);
}

}  // namespace strata
