// Which roles may make which calls: one table for all ports. Pure.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_RPC_POLICY_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_RPC_POLICY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {

// The data plane's first, in the order of DataMethod (proto/runtime/transport/transport.h).
enum class Rpc : uint8_t {
  kOpenSession,
  kPull,
  kPush,
  kMark,
  kPrefetch,
  kForward,
  kSync,
  kSubmit,
  kGetJob,
  kListJobs,
  kCancelJob,
  kCreateCheckpoint,
  kGetCluster,
  kGetShards,
  kGetEvents,
  kSettleQuarantine,
  kCheckHealth,
  kWatchHealth,
};

// Whether a call needs a session credential of the very job, generation and session that it names.
enum class SessionProof : uint8_t {
  kNone,
  kOfLaneHosts,  // where it asks for what hosts of lanes alone are given (a ticket)
  kAlways,
};

struct RpcRule {
  Rpc rpc;
  const char* service;
  const char* method;
  std::array<bool, kRoles.size()> roles;  // by Role
  SessionProof proof = SessionProof::kNone;

  bool Allows(Role role) const { return roles[static_cast<size_t>(role)]; }
  std::vector<Role> AllowedRoles() const;
};

namespace rpc_policy_internal {
constexpr std::array<bool, kRoles.size()> Only(std::initializer_list<Role> allowed) {
  std::array<bool, kRoles.size()> roles{};
  for (const Role role : allowed) roles[static_cast<size_t>(role)] = true;
  return roles;
}
inline constexpr char kData[] = "strata.DataPlane";
inline constexpr char kControl[] = "strata.Scheduler";
inline constexpr char kHealth[] = "grpc.health.v1.Health";
inline constexpr auto kReading = Only({Role::kOperator, Role::kReader});
inline constexpr auto kWorkers = Only({Role::kWorker});
inline constexpr auto kOperators = Only({Role::kOperator});
inline constexpr auto kAll =
    Only({Role::kScheduler, Role::kServer, Role::kWorker, Role::kOperator, Role::kReader});
}  // namespace rpc_policy_internal

// By Rpc. A method that is missing here has no number, and nobody may call it.
inline constexpr RpcRule kRpcRules[] = {
    {Rpc::kOpenSession, rpc_policy_internal::kData, "OpenSession",
     rpc_policy_internal::Only({Role::kWorker, Role::kOperator, Role::kReader}),
     SessionProof::kOfLaneHosts},
    {Rpc::kPull, rpc_policy_internal::kData, "Pull",
     rpc_policy_internal::Only({Role::kWorker, Role::kOperator, Role::kReader}),
     SessionProof::kOfLaneHosts},
    {Rpc::kPush, rpc_policy_internal::kData, "Push", rpc_policy_internal::kWorkers,
     SessionProof::kAlways},
    {Rpc::kMark, rpc_policy_internal::kData, "Mark", rpc_policy_internal::kWorkers,
     SessionProof::kAlways},
    {Rpc::kPrefetch, rpc_policy_internal::kData, "Prefetch", rpc_policy_internal::kWorkers,
     SessionProof::kAlways},
    {Rpc::kForward, rpc_policy_internal::kData, "Forward",
     rpc_policy_internal::Only({Role::kServer})},
    // A node reports under the name and the role of its certificate alone.
    {Rpc::kSync, rpc_policy_internal::kControl, "Sync",
     rpc_policy_internal::Only({Role::kServer, Role::kWorker})},
    {Rpc::kSubmit, rpc_policy_internal::kControl, "Submit", rpc_policy_internal::kOperators},
    {Rpc::kGetJob, rpc_policy_internal::kControl, "GetJob", rpc_policy_internal::kReading},
    {Rpc::kListJobs, rpc_policy_internal::kControl, "ListJobs", rpc_policy_internal::kReading},
    // Of jobs' owners.
    {Rpc::kCancelJob, rpc_policy_internal::kControl, "CancelJob", rpc_policy_internal::kOperators},
    {Rpc::kCreateCheckpoint, rpc_policy_internal::kControl, "CreateCheckpoint",
     rpc_policy_internal::kOperators},
    {Rpc::kGetCluster, rpc_policy_internal::kControl, "GetCluster", rpc_policy_internal::kReading},
    {Rpc::kGetShards, rpc_policy_internal::kControl, "GetShards", rpc_policy_internal::kReading},
    {Rpc::kGetEvents, rpc_policy_internal::kControl, "GetEvents", rpc_policy_internal::kReading},
    {Rpc::kSettleQuarantine, rpc_policy_internal::kControl, "SettleQuarantine",
     rpc_policy_internal::kOperators},
    // On the ports of both services.
    {Rpc::kCheckHealth, rpc_policy_internal::kHealth, "Check", rpc_policy_internal::kAll},
    {Rpc::kWatchHealth, rpc_policy_internal::kHealth, "Watch", rpc_policy_internal::kAll},
};
constexpr const RpcRule& RuleOf(Rpc rpc) { return kRpcRules[static_cast<size_t>(rpc)]; }

// PERMISSION_DENIED unless the caller's role may make the call. OK for whom nobody asked.
absl::Status CheckRole(const Caller& caller, Rpc rpc);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_RPC_POLICY_H_
