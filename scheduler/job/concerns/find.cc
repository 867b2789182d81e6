#include "scheduler/job/concerns/find.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "scheduler/job/concerns/concerns.h"

namespace strata::scheduler {
namespace {

int64_t Before(absl::Time now, absl::Duration passed) {
  return absl::ToUnixMillis(now - std::max(passed, absl::ZeroDuration()));
}

std::string Seconds(absl::Duration d) {
  return absl::StrFormat("%.0f s", absl::ToDoubleSeconds(d));
}

// What people can do about a trouble of a node, or what is done; empty: its text says it.
std::string RemedyOf(absl::string_view reason) {
  if (reason == "SlowDisk") return "nothing is lost, commits take longer; look at the disk";
  if (reason == "DiskFull") return "commits are tried again ten times a second; free space there";
  if (reason == "DiskFailing")
    return "commits are tried again ten times a second; look at the disk";
  if (reason == "MemoryFull") return "it is tried again; give the process more memory";
  return "";
}

}  // namespace

void FindSlowWorkers(const JobView& job, const SlowWorkers& speeds, absl::Time now,
                     std::vector<Concern>& out) {
  for (const SlowWorkers::Slow& slow : speeds.Find(now)) {
    const auto is_here = [&slow](const JobView::Worker& worker) {
      return worker.name == slow.name;
    };
    if (std::none_of(job.workers.begin(), job.workers.end(), is_here)) continue;
    Concern& c = out.emplace_back();
    c.set_reason("Straggler");
    c.set_who(NameOf(WORKER, slow.name));
    c.set_known_by(absl::StrFormat("it works %.3g ms on an example, the others %.3g ms (median)",
                                   slow.seconds * 1000, slow.others * 1000));
    c.set_remedy(job.bsp
                     ? "every step waits for it; look what else its machine does, or stop it: the "
                       "others take its lanes"
                     : "the others do more tasks; look what else its machine does");
  }
}

void FindTroubles(const JobView& job, std::vector<Concern>& out) {
  for (const StandingTrouble& trouble : *job.troubles) {
    const auto is_it = [&trouble](const Trouble& t) { return t.reason() == trouble.reason(); };
    Concern& c = out.emplace_back();
    c.set_reason(trouble.reason());
    c.set_since_unix_ms(trouble.since_unix_ms());
    c.set_who(NameOf(WORKER, trouble.node()));
    for (const auto* servers : {&job.copies, &job.servers}) {
      for (const JobView::Server& server : *servers) {
        if (server.name != trouble.node()) continue;
        c.set_who(NameOf(SERVER, trouble.node()));
        const auto& told = server.last->troubles();
        const auto it = std::find_if(told.begin(), told.end(), is_it);
        if (it != told.end()) c.set_known_by(it->message());
      }
    }
    for (const JobView::Worker& worker : job.workers) {
      if (worker.name != trouble.node()) continue;
      const auto& told = worker.last->troubles();
      const auto it = std::find_if(told.begin(), told.end(), is_it);
      if (it != told.end()) c.set_known_by(it->message());
    }
    c.set_remedy(RemedyOf(trouble.reason()));
  }
}

void FindSilentServers(const JobView& job, absl::Time now, std::vector<Concern>& out) {
  for (const JobView::Server& server : job.servers) {
    const Node* node = job.members->Find(server.name, SERVER);
    if (node != nullptr && node->alive) continue;
    Concern& c = out.emplace_back();
    c.set_reason("SilentServer");
    c.set_who(NameOf(SERVER, server.name));
    if (node == nullptr) {
      c.set_known_by("the scheduler knows no server of that name");
    } else {
      c.set_since_unix_ms(absl::ToUnixMillis(node->last_seen));
      c.set_known_by(absl::StrCat("the scheduler has not heard of it for ",
                                  Seconds(now - node->last_seen), "; a lease lasts ",
                                  Seconds(job.members->lease())));
    }
    c.set_remedy("the job waits for it, as the condition ServerLost says; start it again");
  }
}

void FindUnreachable(const JobView& job, absl::Time now, std::vector<Concern>& out) {
  const auto look = [&](NodeRole role, const std::string& name) {
    const Node* node = job.members->Find(name, role);
    if (node == nullptr || !node->alive) return;
    for (const PeerTrouble& peer : node->peers) {
      const absl::Duration lasted = absl::Milliseconds(peer.for_ms());
      if (lasted < Concerns::kPatience || !job.nodes.contains(peer.name())) continue;
      const Node* other = job.members->Find(peer.name(), peer.role());
      const bool heard = other != nullptr && other->alive;
      Concern& c = out.emplace_back();
      c.set_reason("Unreachable");
      c.set_who(NameOf(peer.role(), peer.name()));
      c.set_other(NameOf(role, name));
      c.set_since_unix_ms(Before(now, lasted));
      c.set_known_by(absl::StrCat(c.other(), " has had no answer of it for ", Seconds(lasted), " (",
                                  peer.message(), "); the scheduler hears ",
                                  heard ? "both" : "the other one alone"));
      c.set_remedy(heard ? "calls are tried again; look at the network between the two"
                         : "calls are tried again; see what SilentServer says of it");
    }
  };
  for (const JobView::Server& server : job.servers) look(SERVER, server.name);
  for (const JobView::Worker& worker : job.workers) {
    if (!worker.name.empty()) look(WORKER, worker.name);
  }
}

}  // namespace strata::scheduler
