#include "proto/runtime/credentials/rpc_policy.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"

namespace strata {
namespace {

constexpr bool EachInItsPlace() {
  for (size_t i = 0; i < std::size(kRpcRules); ++i) {
    if (static_cast<size_t>(kRpcRules[i].rpc) != i) return false;
  }
  return true;
}
static_assert(EachInItsPlace());

}  // namespace

std::vector<Role> RpcRule::AllowedRoles() const {
  std::vector<Role> allowed;
  for (const Role role : kRoles) {
    if (Allows(role)) allowed.push_back(role);
  }
  return allowed;
}

absl::Status CheckRole(const Caller& caller, Rpc rpc) {
  const RpcRule& rule = RuleOf(rpc);
  if (!caller.asked || rule.Allows(caller.role) || STRATA_MUTATION("rpc_policy.roles_are_equal")) {
    return absl::OkStatus();
  }
  const auto name = [](std::string* out, Role role) { out->append(RoleName(role)); };
  return absl::PermissionDeniedError(absl::StrCat(
      RoleName(caller.role), "/", caller.name, " may not call ", rule.method, ": only role ",
      absl::StrJoin(rule.AllowedRoles(), " or ", name), " may; use that one's certificate"));
}

}  // namespace strata
