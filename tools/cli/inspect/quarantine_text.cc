#include "tools/cli/inspect/quarantine_text.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/base/text_table.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLeastPrefix = 4;

// Of a kept job, or of one of the cluster.
template <typename Job>
bool Means(absl::string_view typed, const Job& job) {
  if (typed.empty()) return false;
  if (typed == absl::string_view(job.name()) || typed == absl::StrCat(job.job())) return true;
  return typed.size() >= kLeastPrefix && absl::StartsWith(job.job_uid(), typed);
}

}  // namespace

std::string QuarantineTable(const ClusterStatus& cluster, absl::TimeZone zone) {
  std::vector<TextRow> rows = {{"NODE", "UID", "NAME", "NUMBER", "SIZE", "SINCE"}};
  for (const NodeStatus& n : cluster.nodes()) {
    for (const QuarantinedJob& q : n.quarantined()) {
      rows.push_back(
          {n.name(), q.job_uid(), q.name().empty() ? "-" : q.name(), absl::StrCat(q.job()),
           BytesText(static_cast<double>(q.bytes())),
           absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(q.since_unix_ms()), zone)});
    }
  }
  if (rows.size() == 1) return "nothing is in quarantine\n";
  return absl::StrCat(TextTable(rows),
                      "strata nodes adopt UID has a job go on; strata nodes purge NODE UID "
                      "removes a copy, and nothing else does\n");
}

std::string QuarantineJson(const ClusterStatus& cluster) {
  Json list = Json::array();
  for (const NodeStatus& n : cluster.nodes()) {
    for (const QuarantinedJob& q : n.quarantined()) {
      list.push_back(Json{{"node", n.name()},
                          {"jobUid", q.job_uid()},
                          {"clusterId", q.cluster_id()},
                          {"job", q.job()},
                          {"name", q.name()},
                          {"bytes", q.bytes()},
                          {"sinceUnixMs", q.since_unix_ms()}});
    }
  }
  return Json{{"quarantined", list}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<QuarantinedJob> FindQuarantined(const ClusterStatus& cluster,
                                               absl::string_view typed, absl::string_view node) {
  std::map<std::string, QuarantinedJob> found;  // by UID
  for (const NodeStatus& n : cluster.nodes()) {
    if (!node.empty() && node != absl::string_view(n.name())) continue;
    for (const QuarantinedJob& q : n.quarantined()) {
      if (Means(typed, q)) found.emplace(q.job_uid(), q);
    }
  }
  if (found.size() == 1) return found.begin()->second;
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        node.empty() ? std::string("no server") : absl::StrCat("no server ", node),
        " keeps a job '", typed, "' in quarantine; strata nodes --quarantined lists what is kept"));
  }
  std::string text = absl::StrCat("'", typed, "' may be:");
  for (const auto& [uid, job] : found) absl::StrAppend(&text, " ", uid, " (", job.name(), ")");
  return absl::InvalidArgumentError(absl::StrCat(text, "; give the UID"));
}

Adopted AdoptedJob(const ListJobsReply& jobs, absl::string_view uid) {
  Adopted adopted;
  for (const JobStatus& job : jobs.jobs()) {
    if (job.job_uid() != uid) continue;
    adopted.job = job.job();
    for (const JobCondition& c : job.conditions()) {
      if (c.reason() == "Adopted") adopted.how = c.message();
    }
  }
  return adopted;
}

absl::Status IsKnown(const ListJobsReply& jobs, absl::string_view typed) {
  for (const JobStatus& job : jobs.jobs()) {
    const bool over = job.state() == SUCCEEDED || job.state() == FAILED || job.state() == CANCELLED;
    if (over || !Means(typed, job)) continue;
    return absl::AlreadyExistsError(absl::StrCat("job ", job.name(), " (", job.job_uid(),
                                                 ") is this cluster's already: it is job ",
                                                 job.job()));
  }
  return absl::OkStatus();
}

}  // namespace strata
