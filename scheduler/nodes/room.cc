#include "scheduler/nodes/room.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

// Of a field of MemoryNeed: how to read and set it, and what it is called.
struct Resource {
  uint64_t (*bytes)(const MemoryNeed&);
  void (*set)(MemoryNeed&, uint64_t);
  absl::string_view name;
  absl::string_view option;
};
constexpr std::array<Resource, kSharedResources> kResources = {{
    {[](const MemoryNeed& n) -> uint64_t { return n.dram_bytes(); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_dram_bytes(bytes); }, "memory",
     "spec.storage.dramBytesPerServer"},
    {[](const MemoryNeed& n) -> uint64_t { return n.disk_bytes(); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_disk_bytes(bytes); }, "disk", ""},
    {[](const MemoryNeed& n) -> uint64_t { return n.gpu_bytes(); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_gpu_bytes(bytes); }, "GPU memory",
     "spec.storage.gpuBytesPerServer"},
}};

bool IsWithin(const MemoryNeed& need, const MemoryNeed& free, const MemoryNeed& whole) {
  return std::all_of(kResources.begin(), kResources.end(), [&](const Resource& r) {
    return r.bytes(whole) == 0 || r.bytes(need) <= r.bytes(free);
  });
}

uint64_t Less(uint64_t all, uint64_t taken) { return all - std::min(all, taken); }

MemoryNeed FreeOf(const ServerRoom& room) {
  const MemoryNeed held = HeldOf(room);
  MemoryNeed free;
  for (const Resource& r : kResources) {
    r.set(free, Less(Less(r.bytes(room.whole), r.bytes(held)), r.bytes(room.taken_beside)));
  }
  return free;
}

uint64_t Reserved(uint64_t least, uint64_t likely, uint64_t whole) {
  return whole == 0 ? likely : std::max(least, std::min(likely, whole));
}

// What servers share of a machine, of a file system, of a GPU.
struct Machine {
  uint64_t bytes = 0;
  bool live = false;   // who says so is alive
  uint64_t used = 0;   // beside `bytes`
  uint64_t given = 0;  // to some of them
  uint64_t shares = 0;
};

// Of a resource: what a server has or sees of it, what of that is in use and no other server sees,
// whether it was given to it, and what it is a part of; empty: it is the server's own.
struct Source {
  uint64_t (*bytes)(const NodeRecord&);
  uint64_t (*used)(const NodeRecord&);
  bool (*given)(const NodeRecord&);
  std::string (*whole)(const NodeRecord&);
};
uint64_t Nothing(const NodeRecord&) { return 0; }
// That of a GPU is the same in all control groups; what has none is on threads of the server.
std::string GpuOf(const NodeRecord& r) {
  const bool real = absl::StartsWith(r.device(), "GPU-") || absl::StartsWith(r.device(), "MIG-");
  return real ? r.device() : "";
}
// In the order of kResources.
constexpr std::array<Source, kSharedResources> kSources = {{
    {[](const NodeRecord& r) -> uint64_t { return r.memory_bytes(); }, Nothing,
     [](const NodeRecord& r) { return r.memory_given(); },
     [](const NodeRecord& r) { return r.machine_id(); }},
    {[](const NodeRecord& r) -> uint64_t { return r.disk_bytes(); },
     [](const NodeRecord& r) -> uint64_t { return r.disk_job_bytes(); },
     [](const NodeRecord& r) { return r.disk_given(); },
     [](const NodeRecord& r) { return r.disk_id(); }},
    {[](const NodeRecord& r) -> uint64_t { return r.gpu_bytes(); }, Nothing,
     [](const NodeRecord& r) { return r.gpu_given(); }, GpuOf},
}};

// One more server says what it has and sees. What is free of a file system all of them see, so it
// counts once: the most that is seen, by those who are alive where there are any.
void Add(const Source& source, const Node& node, Machine& machine) {
  const uint64_t bytes = source.bytes(node.record), used = source.used(node.record);
  if (!STRATA_MUTATION("room.files_of_neighbours_forgotten")) machine.used += used;
  if (source.given(node.record)) {
    machine.given += bytes;
    return;
  }
  if (machine.shares == 0 || !STRATA_MUTATION("room.machine_counted_twice")) ++machine.shares;
  if (machine.live && !node.alive) return;
  const uint64_t before = machine.live == node.alive ? machine.bytes : 0;
  machine.bytes = std::max(before, Less(bytes, used));
  machine.live = node.alive;
}

// Of servers that share a machine, beyond their parts of it and within them.
struct Sums {
  uint64_t overhang = 0;
  uint64_t free = 0;
};

void TakeBeside(Rooms& rooms, size_t which) {
  const Resource& resource = kResources[which];
  const auto free_of = [&resource](const ServerRoom& room) {
    return Less(resource.bytes(room.whole), resource.bytes(HeldOf(room)));
  };
  std::map<std::string, Sums> machines;
  for (const auto& [name, room] : rooms) {
    const SharedPart& part = room.shared[which];
    if (part.of.empty()) continue;
    Sums& sums = machines[part.of];
    sums.overhang += Less(resource.bytes(HeldOf(room)), resource.bytes(room.whole));
    if (!part.given) sums.free += free_of(room);
  }
  for (auto& [name, room] : rooms) {
    resource.set(room.taken_beside, 0);
    if (room.shared[which].of.empty() || room.shared[which].given) continue;
    const Sums& sums = machines[room.shared[which].of];
    if (sums.overhang == 0 || sums.free == 0) continue;
    const uint64_t free = free_of(room);
    const double part = static_cast<double>(free) / static_cast<double>(sums.free);
    const double taken = std::ceil(part * static_cast<double>(sums.overhang));
    resource.set(room.taken_beside,
                 sums.overhang >= sums.free ? free : std::min(free, static_cast<uint64_t>(taken)));
  }
}

}  // namespace

Rooms WholeRooms(const Membership& members, const std::function<bool(absl::string_view)>& hosts) {
  Rooms rooms;
  for (const auto& [name, node] : members.nodes()) {
    if (node.record.role() == SERVER) rooms[name];
  }
  for (size_t which = 0; which < kSharedResources; ++which) {
    const Source& source = kSources[which];
    std::map<std::string, Machine> machines;
    const auto counts = [&](const Node& node) {
      return !source.whole(node.record).empty() && source.bytes(node.record) > 0 &&
             (node.alive || hosts(node.record.name()));
    };
    for (const auto& [name, node] : members.nodes()) {
      if (node.record.role() != SERVER || !counts(node)) continue;
      Add(source, node, machines[source.whole(node.record)]);
    }
    for (auto& [name, room] : rooms) {
      const Node& node = *members.Find(name);
      kResources[which].set(room.whole, source.bytes(node.record));
      if (!counts(node)) continue;
      room.shared[which] = {source.whole(node.record), source.given(node.record)};
      if (source.given(node.record)) continue;
      const Machine& machine = machines[source.whole(node.record)];
      const uint64_t left = Less(machine.bytes + machine.used, machine.given);
      kResources[which].set(room.whole, std::max<uint64_t>(1, left / machine.shares));
    }
  }
  return rooms;
}

void TakeBeside(Rooms& rooms) {
  for (size_t which = 0; which < kSharedResources; ++which) {
    if (which > 0 && STRATA_MUTATION("room.disk_not_beside")) continue;
    TakeBeside(rooms, which);
  }
}

MemoryNeed ReservedOn(const ServerNeed& need, const MemoryNeed& whole) {
  MemoryNeed out;
  for (const Resource& r : kResources) {
    r.set(out, Reserved(r.bytes(need.least), r.bytes(need.likely), r.bytes(whole)));
  }
  return out;
}

ServerNeed TimesOf(ServerNeed need, uint32_t times) {
  for (const Resource& r : kResources) {
    r.set(need.least, r.bytes(need.least) * times);
    r.set(need.likely, r.bytes(need.likely) * times);
  }
  return need;
}

MemoryNeed HeldOf(const ServerRoom& room) {
  MemoryNeed sum;
  for (const Holding& h : room.held) {
    for (const Resource& r : kResources) r.set(sum, r.bytes(sum) + r.bytes(h.bytes));
  }
  return sum;
}

bool Fits(const ServerNeed& need, const ServerRoom& room) {
  return IsWithin(ReservedOn(need, room.whole), FreeOf(room), room.whole);
}

bool EverFits(const ServerNeed& need, const MemoryNeed& whole) {
  return IsWithin(ReservedOn(need, whole), whole, whole);
}

std::string DescribeRoom(absl::string_view server, const ServerNeed& need, const ServerRoom& room) {
  const MemoryNeed wanted = ReservedOn(need, room.whole), free = FreeOf(room);
  std::string text;
  for (const Resource& r : kResources) {
    const uint64_t all = r.bytes(room.whole);
    if (all == 0 || r.bytes(wanted) <= r.bytes(free)) continue;
    absl::StrAppend(&text, text.empty() ? absl::StrCat(server, " has ") : ", ",
                    BinarySize(r.bytes(free)), " of ", r.name, " free of ", BinarySize(all));
    std::string holders;
    for (const Holding& h : room.held) {
      if (r.bytes(h.bytes) == 0) continue;
      absl::StrAppend(&holders, holders.empty() ? " (held: job " : ", job ", h.job, " ",
                      BinarySize(r.bytes(h.bytes)));
    }
    if (const uint64_t beside = r.bytes(room.taken_beside); beside > 0) {
      absl::StrAppend(&holders, holders.empty() ? " (held: " : ", ", "jobs on servers beside it ",
                      BinarySize(beside));
    }
    if (!holders.empty()) absl::StrAppend(&text, holders, ")");
  }
  return text;
}

absl::Status CheckRoom(const JobSpec& spec, const Membership& members, const Rooms& rooms) {
  const ServerNeed need = NeedOfServer(spec, {}, 1);
  const uint32_t wanted = spec.replicas().servers();
  uint32_t live = 0, fit = 0;
  MemoryNeed most;
  for (const auto& [name, room] : rooms) {
    const Node* node = members.Find(name);
    live += node != nullptr && node->alive;
    fit += EverFits(need, room.whole);
    most.set_dram_bytes(std::max(most.dram_bytes(), room.whole.dram_bytes()));
    most.set_gpu_bytes(std::max(most.gpu_bytes(), room.whole.gpu_bytes()));
  }
  if (live < wanted || fit >= wanted) return absl::OkStatus();
  std::string asks;
  for (const Resource& r : kResources) {
    if (r.option.empty() || r.bytes(need.least) == 0) continue;
    absl::StrAppend(&asks, asks.empty() ? "" : ", ", r.option, " asks for ",
                    BinarySize(r.bytes(need.least)));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      asks, " on each of ", wanted, " servers, but of the ", rooms.size(), " that are known ", fit,
      " could ever take that (the most that jobs may have of one is ", NeedText(most),
      "; `strata nodes` shows all); lower it, or give servers more (strata-server "
      "--memory-bytes, --gpu-bytes)"));
}

}  // namespace strata::scheduler
