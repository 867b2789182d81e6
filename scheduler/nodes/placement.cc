#include "scheduler/nodes/placement.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/shard_map.h"
#include "proto/job/job_spec.h"

namespace strata::scheduler {
namespace {

constexpr absl::string_view kCuda = "cuda:";

// A job from before there was a choice of precision has none.
bool ComputesOnCpu(const WorkerSpec& spec) {
  return spec.precision().empty() || spec.precision() == "fp32";
}

// The even run of `total` things that belongs to part `i` of `parts`.
std::pair<uint32_t, uint32_t> EvenRun(uint32_t total, uint32_t parts, uint32_t i) {
  const uint64_t first = static_cast<uint64_t>(total) * i / parts;
  const uint64_t end = static_cast<uint64_t>(total) * (i + 1) / parts;
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

// Takes out those that lack the job's GPU; returns how many they were.
size_t RemoveUnable(std::vector<Candidate>& live) {
  const size_t there = live.size();
  live.erase(std::remove_if(live.begin(), live.end(), [](const Candidate& c) { return !c.able; }),
             live.end());
  return there - live.size();
}

// Of servers that have no room for the job, in the status of a job at most so many.
constexpr size_t kServersTold = 4;

// Takes out those that have no room for `need`; returns what they lack.
std::string RemoveFull(std::vector<Candidate>& live, const ServerNeed& need) {
  std::string text;
  size_t full = 0;
  for (const Candidate& c : live) {
    if (Fits(need, c.room)) continue;
    if (++full <= kServersTold) absl::StrAppend(&text, "; ", DescribeRoom(c.name, need, c.room));
  }
  if (full > kServersTold) absl::StrAppend(&text, "; and ", full - kServersTold, " more");
  live.erase(std::remove_if(live.begin(), live.end(),
                            [&need](const Candidate& c) { return !Fits(need, c.room); }),
             live.end());
  return text;
}

// Whether there are zones for so many copies.
absl::Status CheckZones(const std::vector<Candidate>& live, uint32_t replicas) {
  std::map<std::string, std::vector<std::string>> zones;
  for (const Candidate& c : live) zones[c.zone].push_back(c.name);
  if (zones.size() >= replicas) return absl::OkStatus();
  std::string text;
  for (auto& [zone, names] : zones) {
    std::sort(names.begin(), names.end());
    absl::StrAppend(&text, text.empty() ? "" : ", ", zone);
    if (names.size() > 1 || names.front() != zone) {
      absl::StrAppend(&text, " (", absl::StrJoin(names, ", "), ")");
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "waiting for zones: spec.storage.replicas wants ", replicas, " copies of each shard in ",
      replicas, " zones, ", zones.size(), " there", text.empty() ? "" : ": ", text,
      "; start a server elsewhere (strata-server --zone; default: each is one), or lower "
      "replicas"));
}

// Servers of other zones are there, and are full: the `nth` copy of a shard has no place.
absl::Status NoRoomForCopy(const std::vector<Candidate>& live, const std::set<std::string>& zones,
                           uint32_t nth, uint32_t replicas, const ServerNeed& need) {
  std::string full;
  size_t told = 0;
  for (const Candidate& c : live) {
    if (zones.count(c.zone) > 0 || ++told > kServersTold) continue;
    const ServerNeed all = TimesOf(need, c.copies + 1);
    absl::StrAppend(&full, "; ", DescribeRoom(c.name, all, c.room), " and would have ",
                    c.copies + 1, c.copies == 0 ? " copy" : " copies");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("waiting for room: copy ", nth, " of ", replicas, " of a shard (",
                   NeedText(need.likely), " a server's shards) has none in another zone", full));
}

// CheckGpus, of one role: `what` asks for a GPU that `able` says a node has; `remedy` ends the
// text.
absl::Status CheckRole(const Membership& members, NodeRole role, absl::string_view what,
                       absl::string_view remedy,
                       const std::function<bool(const NodeRecord&)>& able) {
  size_t live = 0;
  for (const auto& [name, node] : members.nodes()) {
    if (node.record.role() != role) continue;
    if (able(node.record)) return absl::OkStatus();
    live += node.alive;
  }
  if (live == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, ", but of the ", live, role == WORKER ? " workers" : " servers",
                   " there none has that GPU (`strata nodes` shows theirs); ", remedy));
}

// Not enough of `free` are of one class: an error where there are enough of all classes together.
absl::Status CheckOneClass(const std::vector<Candidate>& live, uint32_t count) {
  std::vector<const Candidate*> free;
  for (const Candidate& c : live) {
    if (c.jobs == 0) free.push_back(&c);
  }
  if (free.size() < count) return absl::OkStatus();
  for (const Candidate* other : free) {
    if (other->device_class == free.front()->device_class) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "a bsp job's ", count, " workers have to be of one device class, but worker ",
        free.front()->name, " computes on ", free.front()->device_class, " and worker ",
        other->name, " on ", other->device_class,
        "; set spec.worker.device to cpu, lower spec.replicas.workers, or start workers with equal "
        "devices"));
  }
  return absl::OkStatus();
}

}  // namespace

bool ComputesWith(const WorkerSpec& spec, const NodeRecord& worker, Candidate& candidate) {
  const absl::string_view wanted = spec.device();
  candidate.numerics_id = worker.numerics_id();
  candidate.device_class = "cpu";
  if (wanted == "host") {
    candidate.device_class = "host";
    candidate.numerics_id = absl::StrCat("host of ", worker.numerics_id());
    return true;
  }
  const bool named = absl::StartsWith(wanted, kCuda);
  if ((worker.device().empty() && (named || !ComputesOnCpu(spec))) ||
      (named && !absl::StartsWith(worker.device(), wanted.substr(kCuda.size())))) {
    candidate.able = false;
    return false;
  }
  if (wanted == "cpu" || worker.device().empty()) return true;
  candidate.numerics_id = candidate.device_class = worker.device_numerics_id();
  return true;
}

bool HoldsGpuTier(const StorageSpec& spec, const NodeRecord& server) {
  if (spec.gpu_backend() == "host" || !server.device().empty()) return true;
  const auto bytes = ParseBytes(spec.gpu_bytes_per_server());
  return !bytes.ok() || *bytes == 0;
}

absl::Status CheckGpus(const JobSpec& spec, const Membership& members) {
  const WorkerSpec& worker = spec.worker();
  const bool named = absl::StartsWith(worker.device(), kCuda);
  absl::Status workers = CheckRole(
      members, WORKER,
      named ? absl::StrCat("spec.worker.device is ", worker.device())
            : absl::StrCat("spec.worker.precision is ", worker.precision(),
                           ", for which a worker needs a GPU"),
      absl::StrCat("start strata-worker with --device, or give ", named ? "auto" : "fp32"),
      [&worker](const NodeRecord& node) {
        Candidate candidate;
        return ComputesWith(worker, node, candidate);
      });
  if (!workers.ok()) return workers;
  return CheckRole(
      members, SERVER,
      absl::StrCat("spec.storage.gpuBytesPerServer is ", spec.storage().gpu_bytes_per_server(),
                   ", for which a server needs a GPU"),
      "start strata-server with --device, or give spec.storage.gpuBackend: host",
      [&spec](const NodeRecord& node) { return HoldsGpuTier(spec.storage(), node); });
}

absl::Status CheckReplicas(const JobSpec& spec) {
  const uint32_t workers = spec.replicas().workers();
  const uint32_t lanes = spec.training().lanes();
  if (workers > lanes) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.replicas.workers is ", workers, " but spec.training.lanes is ", lanes,
                     "; a worker without a lane has nothing to do: use at most ", lanes,
                     " workers or raise the lanes"));
  }
  if (spec.replicas().servers() > spec.storage().partitions()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.replicas.servers is ", spec.replicas().servers(), " but spec.storage.partitions is ",
        spec.storage().partitions(), "; every server needs a partition"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ChooseServers(std::vector<Candidate> live, uint32_t count,
                                                       const ServerNeed& need) {
  const size_t there = live.size();
  const size_t unable = RemoveUnable(live);
  if (live.size() < count) {
    std::string text = absl::StrCat("waiting for servers: ", count, " wanted, ", there, " there");
    if (unable > 0) {
      absl::StrAppend(&text, ", ", unable,
                      " without a GPU for spec.storage.gpuBytesPerServer (start them with "
                      "--device, or give spec.storage.gpuBackend: host)");
    }
    return absl::UnavailableError(text);
  }
  std::sort(live.begin(), live.end(),
            [](const Candidate& a, const Candidate& b) { return a.name < b.name; });
  const std::string full = RemoveFull(live, need);
  if (live.size() < count) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "waiting for room: ", count, " servers wanted with ", NeedText(need.likely), " each",
        need.guessed ? absl::StrCat(" (an estimate, with ", need.rows,
                                    " rows of features: spec.storage.dramBytesPerServer is not "
                                    "set, and bounds it)")
                     : "",
        ", ", live.size(), " have it", full));
  }
  std::sort(live.begin(), live.end(), [](const Candidate& a, const Candidate& b) {
    return a.jobs != b.jobs ? a.jobs < b.jobs : a.name < b.name;
  });
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back(live[i].name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string ZoneOf(const NodeRecord& server) {
  return server.zone().empty() ? server.name() : server.zone();
}

std::string ChooseCopy(const std::vector<Candidate>& live, const std::set<std::string>& zones,
                       const std::string& after, const ServerNeed& need) {
  const Candidate* best = nullptr;
  const auto order = [&after](const Candidate& c) {
    return std::make_tuple(c.copies, c.name <= after, c.name);
  };
  for (const Candidate& c : live) {
    if (!c.able || zones.count(c.zone) > 0 || !Fits(TimesOf(need, c.copies + 1), c.room)) continue;
    if (best == nullptr || order(c) < order(*best)) best = &c;
  }
  return best == nullptr ? "" : best->name;
}

absl::StatusOr<std::vector<std::vector<std::string>>> ChooseCopies(
    std::vector<Candidate> live, const std::vector<std::string>& heads, uint32_t replicas,
    const ServerNeed& need) {
  RemoveUnable(live);
  const absl::Status zones = CheckZones(live, replicas);
  if (!zones.ok()) return zones;
  std::vector<std::vector<std::string>> chains;
  std::vector<std::set<std::string>> used;  // zones of each
  for (const std::string& head : heads) {
    chains.push_back({head});
    const auto at = std::find_if(live.begin(), live.end(),
                                 [&head](const Candidate& c) { return c.name == head; });
    used.push_back({at == live.end() ? head : at->zone});
    if (at != live.end()) ++at->copies;
  }
  // By rounds, so that the second copies are spread before the third.
  for (uint32_t copy = 1; copy < replicas; ++copy) {
    for (size_t i = 0; i < heads.size(); ++i) {
      const std::string name = ChooseCopy(live, used[i], heads[i], need);
      const auto at = std::find_if(live.begin(), live.end(),
                                   [&name](const Candidate& c) { return c.name == name; });
      if (name.empty()) return NoRoomForCopy(live, used[i], copy + 1, replicas, need);
      chains[i].push_back(name);
      used[i].insert(at->zone);
      ++at->copies;
    }
  }
  return chains;
}

absl::StatusOr<std::vector<std::string>> ChooseWorkers(std::vector<Candidate> live, uint32_t count,
                                                       bool same_numerics,
                                                       const std::string& wanted) {
  std::sort(live.begin(), live.end(),
            [](const Candidate& a, const Candidate& b) { return a.name < b.name; });
  const size_t there = live.size();
  const size_t unable = RemoveUnable(live);
  std::vector<std::string> order;  // numerics ids, by their first worker's name
  std::map<std::string, std::vector<std::string>> free;
  size_t busy = 0;
  for (const Candidate& c : live) {
    if (c.jobs > 0) {
      ++busy;
      continue;
    }
    const std::string id = same_numerics ? c.numerics_id : std::string();
    if (same_numerics && !wanted.empty() && id != wanted) continue;
    if (free.find(id) == free.end()) order.push_back(id);
    free[id].push_back(c.name);
  }
  for (const std::string& id : order) {
    std::vector<std::string>& names = free[id];
    if (names.size() < count) continue;
    names.resize(count);
    return names;
  }
  if (same_numerics && wanted.empty()) {
    if (absl::Status s = CheckOneClass(live, count); !s.ok()) return s;
  }
  std::string text = absl::StrCat("waiting for workers: ", count, " wanted, ", there, " there, ",
                                  busy, " of them with another job");
  if (unable > 0) {
    absl::StrAppend(&text, ", ", unable,
                    " without the GPU that spec.worker asks for (`strata nodes` shows theirs)");
  }
  if (same_numerics && !wanted.empty()) {
    absl::StrAppend(&text, "; a bsp job needs the numerics id it began with: ", wanted);
  } else if (order.size() > 1) {
    absl::StrAppend(&text, "; a bsp job needs workers of one numerics id:");
    for (const std::string& id : order) absl::StrAppend(&text, " ", free[id].size(), " x ", id);
  }
  return absl::UnavailableError(text);
}

std::vector<ShardAssignment> PlaceShards(const JobSpec& spec, uint32_t servers, uint32_t cores) {
  const uint32_t partitions = spec.storage().partitions();
  const ShardMap map = ShardMap::Even(MapEpoch(1), Partitioning(partitions), servers,
                                      ShardsOfServer(spec, servers, cores));
  std::vector<ShardAssignment> shards;
  for (const ShardPlace& place : map.shards()) {
    ShardAssignment& s = shards.emplace_back();
    s.set_shard(place.id.value);
    s.set_first_partition(place.range.first.value);
    s.set_last_partition(place.range.last.value);
    s.set_server(place.server);
  }
  return shards;
}

std::vector<std::vector<uint32_t>> AssignLanes(uint32_t lanes, const std::vector<bool>& occupied) {
  const uint32_t slots = static_cast<uint32_t>(occupied.size());
  std::vector<std::vector<uint32_t>> result(slots);
  std::vector<uint32_t> hosts;
  for (uint32_t i = 0; i < slots; ++i) {
    if (occupied[i]) hosts.push_back(i);
  }
  if (hosts.empty()) return result;
  uint32_t turn = 0;  // a vacant slot with one lane gives it to the next host each time
  for (uint32_t i = 0; i < slots; ++i) {
    const auto [first, end] = EvenRun(lanes, slots, i);
    if (occupied[i]) {
      for (uint32_t lane = first; lane < end; ++lane) result[i].push_back(lane);
      continue;
    }
    const uint32_t parts = std::min<uint32_t>(static_cast<uint32_t>(hosts.size()), end - first);
    for (uint32_t part = 0; part < parts; ++part) {
      const auto [from, to] = EvenRun(end - first, parts, part);
      std::vector<uint32_t>& host = result[hosts[turn++ % hosts.size()]];
      for (uint32_t lane = first + from; lane < first + to; ++lane) host.push_back(lane);
    }
  }
  for (std::vector<uint32_t>& held : result) std::sort(held.begin(), held.end());
  return result;
}

}  // namespace strata::scheduler
