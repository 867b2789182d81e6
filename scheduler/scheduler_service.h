// The scheduler behind gRPC.
// Tested by tests/scheduler/scheduler_test.cc
#ifndef STRATA_SCHEDULER_SCHEDULER_SERVICE_H_
#define STRATA_SCHEDULER_SCHEDULER_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/bind_policy.h"
#include "proto/runtime/transport/caller_limits.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/port_limits.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "scheduler/job_owners.h"
#include "scheduler/own_concerns.h"

namespace strata::scheduler {

struct SchedulerServiceOptions {
  // Must outlive the service.
  SchedulerClient* scheduler = nullptr;
  // "host:port"; port 0 takes a free one.
  std::string address = "127.0.0.1:0";
  BindScope scope = BindScope::kLoopbackOnly;
  // What the port shows, and whom it lets in. Null: nobody is asked.
  std::shared_ptr<ProcessTls> tls = nullptr;
  // The same scheduler; outlives the service. Required with `tls`.
  JobOwners* owners = nullptr;
  // Calls at once; a long poll holds a thread, so this is nodes + clients + a few. Further calls
  // are answered RESOURCE_EXHAUSTED.
  int max_threads = 1024;
  // Of each caller who has proven who he is. A node has one report under way, a person's commands a
  // few calls: many fewer than the port has threads, so that no caller takes them all.
  CallerLimitsOptions caller_limits = {
      .calls_in_flight = 64, .bytes_in_flight = uint64_t{512} << 20, .calls_a_second = 500};
  // Of connections.
  PortLimits port_limits = {};
  // By which clients that fall silent are given up (proto/runtime/transport/keepalive.h), and this
  // is by them.
  absl::Duration lease = KnownLease::kDefault;
  // Told with each job's status; outlives the service. Null: nothing is.
  const OwnConcerns* own_concerns = nullptr;
};

// Thread-safe. The destructor takes no new calls, waits for those in flight for at most two seconds
// (Stop the scheduler first: that ends long polls), and ends the rest.
class SchedulerService {
 public:
  // ALREADY_EXISTS (port taken), INVALID_ARGUMENT, PERMISSION_DENIED (bind policy).
  static absl::StatusOr<std::unique_ptr<SchedulerService>> Start(SchedulerServiceOptions options);
  virtual ~SchedulerService() = default;
  // With the real port.
  virtual const std::string& address() const = 0;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_SCHEDULER_SERVICE_H_
