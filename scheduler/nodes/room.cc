#include "scheduler/nodes/room.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

// Of a field of MemoryNeed: how to read it, and what it is called.
struct Resource {
  uint64_t (*bytes)(const MemoryNeed&);
  absl::string_view name;
  absl::string_view option;
};
constexpr std::array<Resource, 3> kResources = {{
    {[](const MemoryNeed& n) -> uint64_t { return n.dram_bytes(); }, "memory",
     "spec.storage.dramBytesPerServer"},
    {[](const MemoryNeed& n) -> uint64_t { return n.disk_bytes(); }, "disk", ""},
    {[](const MemoryNeed& n) -> uint64_t { return n.gpu_bytes(); }, "GPU memory",
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
  free.set_dram_bytes(Less(Less(room.whole.dram_bytes(), held.dram_bytes()), room.taken_beside));
  free.set_disk_bytes(Less(room.whole.disk_bytes(), held.disk_bytes()));
  free.set_gpu_bytes(Less(room.whole.gpu_bytes(), held.gpu_bytes()));
  return free;
}

uint64_t Reserved(uint64_t least, uint64_t likely, uint64_t whole) {
  return whole == 0 ? likely : std::max(least, std::min(likely, whole));
}

// What servers share of a machine.
struct Machine {
  uint64_t bytes = 0;
  uint64_t given = 0;  // to some of them
  uint64_t shares = 0;
};

// Of a resource: what a server has or sees of it, whether that was given to it, and what it is a
// part of; empty: it is the server's own.
struct Source {
  uint64_t (*bytes)(const NodeRecord&);
  bool (*given)(const NodeRecord&);
  std::string (*whole)(const NodeRecord&);
  void (*set)(MemoryNeed&, uint64_t);
};
std::string PartOf(const NodeRecord& r, const std::string& part) {
  return r.machine_id().empty() || part.empty() ? "" : absl::StrCat(r.machine_id(), "\n", part);
}
constexpr std::array<Source, 3> kSources = {{
    {[](const NodeRecord& r) -> uint64_t { return r.memory_bytes(); },
     [](const NodeRecord& r) { return r.memory_given(); },
     [](const NodeRecord& r) { return r.machine_id(); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_dram_bytes(bytes); }},
    {[](const NodeRecord& r) -> uint64_t { return r.disk_bytes(); },
     [](const NodeRecord& r) { return r.disk_given(); },
     [](const NodeRecord& r) { return PartOf(r, r.disk_id()); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_disk_bytes(bytes); }},
    {[](const NodeRecord& r) -> uint64_t { return r.gpu_bytes(); },
     [](const NodeRecord& r) { return r.gpu_given(); },
     [](const NodeRecord& r) { return PartOf(r, r.device()); },
     [](MemoryNeed& n, uint64_t bytes) { n.set_gpu_bytes(bytes); }},
}};

// Of servers that share a machine, beyond their parts of it and within them.
struct Sums {
  uint64_t overhang = 0;
  uint64_t free = 0;
};

}  // namespace

Rooms WholeRooms(const Membership& members, const std::function<bool(absl::string_view)>& hosts) {
  Rooms rooms;
  for (const auto& [name, node] : members.nodes()) {
    if (node.record.role() == SERVER) rooms[name];
  }
  for (const Source& source : kSources) {
    const bool memory = &source == kSources.data();
    std::map<std::string, Machine> machines;
    const auto counts = [&](const Node& node) {
      return !source.whole(node.record).empty() && source.bytes(node.record) > 0 &&
             (node.alive || hosts(node.record.name()));
    };
    for (const auto& [name, node] : members.nodes()) {
      if (node.record.role() != SERVER || !counts(node)) continue;
      Machine& machine = machines[source.whole(node.record)];
      if (source.given(node.record)) {
        machine.given += source.bytes(node.record);
      } else {
        machine.bytes = std::max(machine.bytes, source.bytes(node.record));
        if (machine.shares == 0 || !STRATA_MUTATION("room.machine_counted_twice")) ++machine.shares;
      }
    }
    for (auto& [name, room] : rooms) {
      const Node& node = *members.Find(name);
      source.set(room.whole, source.bytes(node.record));
      if (!counts(node)) continue;
      const bool given = source.given(node.record);
      if (memory) {
        room.machine = node.record.machine_id();
        room.given = given;
      }
      if (given) continue;
      const Machine& machine = machines[source.whole(node.record)];
      const uint64_t left = machine.bytes - std::min(machine.bytes, machine.given);
      source.set(room.whole, std::max<uint64_t>(1, left / machine.shares));
    }
  }
  return rooms;
}

void TakeBeside(Rooms& rooms) {
  std::map<std::string, Sums> machines;
  for (const auto& [name, room] : rooms) {
    if (room.machine.empty()) continue;
    Sums& sums = machines[room.machine];
    sums.overhang += Less(HeldOf(room).dram_bytes(), room.whole.dram_bytes());
    if (!room.given) sums.free += FreeOf(room).dram_bytes();
  }
  for (auto& [name, room] : rooms) {
    if (room.machine.empty() || room.given) continue;
    const Sums& sums = machines[room.machine];
    if (sums.overhang == 0 || sums.free == 0) continue;
    const uint64_t free = FreeOf(room).dram_bytes();
    const double part = static_cast<double>(free) / static_cast<double>(sums.free);
    const double taken = std::ceil(part * static_cast<double>(sums.overhang));
    room.taken_beside =
        sums.overhang >= sums.free ? free : std::min(free, static_cast<uint64_t>(taken));
  }
}

MemoryNeed ReservedOn(const ServerNeed& need, const MemoryNeed& whole) {
  MemoryNeed out;
  out.set_dram_bytes(
      Reserved(need.least.dram_bytes(), need.likely.dram_bytes(), whole.dram_bytes()));
  out.set_disk_bytes(
      Reserved(need.least.disk_bytes(), need.likely.disk_bytes(), whole.disk_bytes()));
  out.set_gpu_bytes(Reserved(need.least.gpu_bytes(), need.likely.gpu_bytes(), whole.gpu_bytes()));
  return out;
}

MemoryNeed HeldOf(const ServerRoom& room) {
  MemoryNeed sum;
  for (const Holding& h : room.held) {
    sum.set_dram_bytes(sum.dram_bytes() + h.bytes.dram_bytes());
    sum.set_disk_bytes(sum.disk_bytes() + h.bytes.disk_bytes());
    sum.set_gpu_bytes(sum.gpu_bytes() + h.bytes.gpu_bytes());
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
    if (room.taken_beside > 0 && &r == kResources.data()) {
      absl::StrAppend(&holders, holders.empty() ? " (held: " : ", ", "jobs on servers beside it ",
                      BinarySize(room.taken_beside));
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
