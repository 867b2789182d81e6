#include "scheduler/nodes/room.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"

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

bool FitsBeside(const MemoryNeed& need, const MemoryNeed& held, const MemoryNeed& whole) {
  return std::all_of(kResources.begin(), kResources.end(), [&](const Resource& r) {
    const uint64_t all = r.bytes(whole), taken = std::min(r.bytes(held), all);
    return all == 0 || r.bytes(need) <= all - taken;
  });
}

uint64_t Reserved(uint64_t least, uint64_t likely, uint64_t whole) {
  return whole == 0 ? likely : std::max(least, std::min(likely, whole));
}

// What servers that share a machine have of it.
struct Machine {
  uint64_t bytes = 0;
  uint64_t given = 0;  // to some of them
  uint64_t shares = 0;
};

}  // namespace

Rooms WholeRooms(const Membership& members, const std::function<bool(absl::string_view)>& hosts) {
  std::map<std::string, Machine> machines;
  const auto counts = [&](const Node& node) {
    return !node.record.machine_id().empty() && node.record.memory_bytes() > 0 &&
           (node.alive || hosts(node.record.name()));
  };
  for (const auto& [name, node] : members.nodes()) {
    if (node.record.role() != SERVER || !counts(node)) continue;
    Machine& machine = machines[node.record.machine_id()];
    if (node.record.memory_given()) {
      machine.given += node.record.memory_bytes();
    } else {
      machine.bytes = std::max(machine.bytes, node.record.memory_bytes());
      ++machine.shares;
    }
  }
  Rooms rooms;
  for (const auto& [name, node] : members.nodes()) {
    const NodeRecord& r = node.record;
    if (r.role() != SERVER) continue;
    MemoryNeed& whole = rooms[name].whole;
    whole.set_dram_bytes(r.memory_bytes());
    whole.set_disk_bytes(r.disk_bytes());
    whole.set_gpu_bytes(r.gpu_bytes());
    if (r.memory_given() || !counts(node)) continue;
    const Machine& machine = machines[r.machine_id()];
    const uint64_t left = machine.bytes - std::min(machine.bytes, machine.given);
    whole.set_dram_bytes(std::max<uint64_t>(1, left / machine.shares));
  }
  return rooms;
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
  return FitsBeside(ReservedOn(need, room.whole), HeldOf(room), room.whole);
}

bool EverFits(const ServerNeed& need, const MemoryNeed& whole) {
  return FitsBeside(ReservedOn(need, whole), MemoryNeed(), whole);
}

std::string DescribeRoom(absl::string_view server, const ServerNeed& need, const ServerRoom& room) {
  const MemoryNeed wanted = ReservedOn(need, room.whole), held = HeldOf(room);
  std::string text;
  for (const Resource& r : kResources) {
    const uint64_t all = r.bytes(room.whole), taken = std::min(r.bytes(held), all);
    if (all == 0 || r.bytes(wanted) <= all - taken) continue;
    absl::StrAppend(&text, text.empty() ? absl::StrCat(server, " has ") : ", ",
                    BinarySize(all - taken), " of ", r.name, " free of ", BinarySize(all));
    std::string holders;
    for (const Holding& h : room.held) {
      if (r.bytes(h.bytes) == 0) continue;
      absl::StrAppend(&holders, holders.empty() ? " (held: job " : ", job ", h.job, " ",
                      BinarySize(r.bytes(h.bytes)));
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
