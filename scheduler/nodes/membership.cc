#include "scheduler/nodes/membership.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/zone.h"

namespace strata::scheduler {
namespace {

absl::Status Check(const NodeReport& report) {
  if (report.name().empty() || report.name().size() > Membership::kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("name has ", report.name().size(),
                                                   " bytes; it must have 1 to ",
                                                   Membership::kMaxNameBytes));
  }
  if (report.role() != SERVER && report.role() != WORKER) {
    return absl::InvalidArgumentError(absl::StrCat("role is ", static_cast<int>(report.role()),
                                                   "; it must be SERVER (1) or WORKER (2)"));
  }
  if (report.incarnation() == 0) {
    return absl::InvalidArgumentError("incarnation is 0; draw a random number at start");
  }
  if (report.role() == SERVER && report.data_address().empty()) {
    return absl::InvalidArgumentError("data_address is empty; a server must say where it listens");
  }
  if (report.zone().empty()) return absl::OkStatus();
  const absl::Status zone = CheckZone(report.zone());
  return zone.ok() ? zone : absl::InvalidArgumentError(absl::StrCat("zone ", zone.message()));
}

// What it could not reach may be many, of whoever it says that it is.
void Remember(const NodeReport& report, Node& node) {
  node.peers.assign(report.peers().begin(),
                    report.peers().begin() + std::min(report.peers_size(), Membership::kMaxPeers));
  node.certificate_not_after_unix_ms = report.certificate_not_after_unix_ms();
}

void Describe(const NodeReport& report, NodeRecord& record) {
  record.set_name(report.name());
  record.set_role(report.role());
  record.set_incarnation(report.incarnation());
  record.set_data_address(report.data_address());
  record.set_metrics_address(report.metrics_address());
  record.set_cores(report.cores());
  record.set_memory_bytes(report.memory_bytes());
  record.set_numerics_id(report.numerics_id());
  record.set_pid(report.pid());
  record.set_device(report.device());
  record.set_device_numerics_id(report.device_numerics_id());
  record.set_machine_id(report.machine_id());
  record.set_disk_bytes(report.disk_bytes());
  record.set_gpu_bytes(report.gpu_bytes());
  record.set_memory_given(report.memory_given());
  record.set_disk_given(report.disk_given());
  record.set_gpu_given(report.gpu_given());
  record.set_disk_id(report.disk_id());
  record.set_disk_job_bytes(report.disk_job_bytes());
  record.set_zone(report.zone());
  record.clear_silent_since_unix_ms();
  record.clear_silent_ms();
}

// Once in a lease: each change is recorded.
void RecordSilence(absl::Duration lease, Node& node) {
  if (lease <= absl::ZeroDuration()) return;
  const int64_t leases = node.silence / lease;
  node.record.set_silent_since_unix_ms(absl::ToUnixMillis(node.last_seen));
  node.record.set_silent_ms(absl::ToInt64Milliseconds(leases * lease));
}

bool WasReplaced(const NodeRecord& record, uint64_t incarnation) {
  return std::find(record.replaced().begin(), record.replaced().end(), incarnation) !=
         record.replaced().end();
}

}  // namespace

absl::Duration Membership::TimeToReturn() const {
  if (STRATA_MUTATION("silence.no_time_to_return")) return absl::ZeroDuration();
  return std::min(absl::ZeroDuration(), lease_ - kReturnTime);
}

void Membership::Restore(const NodeRecord& record, absl::Time now) {
  const bool lapsed = record.silent_since_unix_ms() != 0;
  nodes_[record.name()] =
      Node{.record = record,
           .last_seen = lapsed ? absl::FromUnixMillis(record.silent_since_unix_ms()) : now,
           .silence = TimeToReturn(),
           .silence_before = absl::Milliseconds(record.silent_ms()),
           .alive = !lapsed};
}

void Membership::ForgetSilences(absl::Time now) {
  for (auto& [name, node] : nodes_) {
    NodeRecord record = node.record;
    record.clear_silent_since_unix_ms();
    record.clear_silent_ms();
    Restore(record, now);
  }
}

absl::StatusOr<Membership::Admission> Membership::Report(const NodeReport& report, absl::Time now,
                                                         uint64_t& next_session) {
  if (absl::Status s = Check(report); !s.ok()) return s;
  auto it = nodes_.find(report.name());
  if (it != nodes_.end() && it->second.record.incarnation() == report.incarnation()) {
    Node& node = it->second;
    if (report.session() != 0 && report.session() != node.record.session()) {
      return absl::UnauthenticatedError(absl::StrCat("session ", report.session(), " of ",
                                                     report.name(),
                                                     " is not known; register with session 0"));
    }
    Admission admission{.session = node.record.session(), .revived = !node.alive};
    Describe(report, node.record);
    Remember(report, node);
    node.last_seen = now;
    node.silence = node.silence_before = absl::ZeroDuration();
    node.alive = true;
    return admission;
  }
  if (report.session() != 0) {
    return absl::UnauthenticatedError(
        absl::StrCat("session ", report.session(), " of ", report.name(),
                     it == nodes_.end() ? " is not known; register with session 0"
                                        : " was replaced by a newer process of that name"));
  }
  if (it != nodes_.end() && WasReplaced(it->second.record, report.incarnation()) &&
      !STRATA_MUTATION("silence.replaced_returns")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "name ", report.name(), " is held by a newer process (pid ", it->second.record.pid(),
        ", address ", it->second.record.data_address(), "); stop one or give it another name"));
  }
  if (it != nodes_.end() && it->second.alive && it->second.record.role() != report.role()) {
    return absl::AlreadyExistsError(absl::StrCat("name ", report.name(), " is taken by a live ",
                                                 NodeRole_Name(it->second.record.role())));
  }
  if (it == nodes_.end() && nodes_.size() >= kMaxNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the cluster has ", nodes_.size(), " nodes; the limit is ", kMaxNodes));
  }
  Admission admission{.session = next_session++, .registered = true};
  Node& node = nodes_[report.name()];
  if (it != nodes_.end()) {
    admission.replaced = true;
    admission.moved = report.disk_id().empty() || node.record.disk_id() != report.disk_id();
    node.record.add_replaced(node.record.incarnation());
    while (static_cast<size_t>(node.record.replaced_size()) > kMaxReplaced) {
      node.record.mutable_replaced()->erase(node.record.replaced().begin());
    }
  }
  admission.revived = !node.alive;
  node.record.set_session(admission.session);
  Describe(report, node.record);
  Remember(report, node);
  node.last_seen = now;
  node.silence = node.silence_before = absl::ZeroDuration();
  node.alive = true;
  return admission;
}

absl::Duration Membership::Listen(absl::Time now) {
  const absl::Time before = listened_ == absl::InfinitePast() ? now : listened_;
  listened_ = now;
  const absl::Duration passed = now - before;
  if (STRATA_MUTATION("silence.refused_count")) deaf_ = false;
  const bool lost = deaf_ || passed > kPatience;
  if ((std::exchange(deaf_, false) || passed > lease_ / 2) &&
      !STRATA_MUTATION("silence.own_counts")) {
    for (auto& [name, node] : nodes_) {
      if (!node.alive && node.silence > lease_) node.silence_before = node.silence;
      node.silence = lost ? TimeToReturn() : absl::ZeroDuration();
    }
    return passed;
  }
  for (auto& [name, node] : nodes_) {
    node.silence += std::min(now - std::max(before, node.last_seen), lease_ / kLooks);
  }
  return absl::ZeroDuration();
}

std::vector<std::string> Membership::Expire() {
  std::vector<std::string> lapsed;
  for (auto& [name, node] : nodes_) {
    if (node.alive && node.silence > lease_ && !STRATA_MUTATION("silence.nobody_lapses")) {
      node.alive = false;
      lapsed.push_back(name);
    }
    if (node.alive || node.silence <= lease_) continue;
    node.silence += std::exchange(node.silence_before, absl::ZeroDuration());
    RecordSilence(lease_, node);
  }
  return lapsed;
}

const Node* Membership::Find(absl::string_view name) const {
  auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

const Node* Membership::Find(absl::string_view name, NodeRole role) const {
  const Node* const node = Find(name);
  const bool is_it =
      node != nullptr && (node->record.role() == role || STRATA_MUTATION("silence.role_forgotten"));
  return is_it ? node : nullptr;
}

void Membership::Forget(absl::string_view name) {
  auto it = nodes_.find(name);
  if (it != nodes_.end() && !it->second.alive) nodes_.erase(it);
}

}  // namespace strata::scheduler
