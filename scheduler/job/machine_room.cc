// JobMachine: what it keeps of its servers, and which servers have that free.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/job/memory_need.h"
#include "proto/strata/control.pb.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/room.h"

namespace strata::scheduler {
namespace {

// What servers report grows by the moment; what is reserved grows by this part of the estimate.
constexpr uint64_t kGrowth = 4;
// A guess that takes this part of a server is told.
constexpr uint64_t kTold = 4;

}  // namespace

const ServerNeed& JobMachine::Need(uint32_t shards) const {
  if (need_shards_ == shards && need_indexed_ == index_.has_value()) return need_;
  DataSize data;
  if (index_) {
    const DataShape& shape = index_->train().shape();
    data = {.lines = index_->train().lines(), .fields = shape.fields(), .numeric = shape.numeric()};
  }
  need_ = NeedOfServer(job(), data, shards);
  need_shards_ = shards;
  need_indexed_ = index_.has_value();
  return need_;
}

const ServerNeed& JobMachine::NeedNow(const ClusterView& cluster) const {
  const uint32_t servers = job().replicas().servers();
  if (state_.shards_size() > 0) {
    return Need(static_cast<uint32_t>(state_.shards_size()) / std::max(1u, servers));
  }
  uint32_t cores = 0;
  for (const auto& [name, node] : cluster.members->nodes()) {
    if (node.alive && node.record.role() == SERVER) cores = std::max(cores, node.record.cores());
  }
  return Need(ShardsOfServer(job(), servers, cores));
}

absl::StatusOr<std::vector<std::string>> JobMachine::FreeServers(const ClusterView& cluster,
                                                                 uint32_t count) const {
  return ChooseServers(Candidates(cluster, SERVER), count, NeedNow(cluster));
}

// Workers are not kept meanwhile: other jobs may have use for them.
void JobMachine::WaitForServers(const absl::Status& why, absl::Time now) {
  if (!absl::IsResourceExhausted(why)) return SayAgain("WaitingForServers", why.message(), now);
  SayAgain("WaitingForRoom", why.message(), now);
  state_.set_phase(WAITING);
  state_.clear_workers();
  workers_.clear();
}

// Where it keeps others from a server, users should know what would bound it.
void JobMachine::SayGuess(const ClusterView& cluster, absl::Time now) {
  const ServerNeed& need = NeedNow(cluster);
  if (!need.guessed || !cluster.rooms) return;
  const Rooms rooms = cluster.rooms();
  for (const ServerSlot& slot : state_.servers()) {
    const auto room = rooms.find(slot.name());
    if (room == rooms.end()) continue;
    const uint64_t whole = room->second.whole.dram_bytes();
    const uint64_t kept = ReservedOn(need, room->second.whole).dram_bytes();
    if (kept < whole / kTold || whole == 0) continue;
    return Say("MemoryEstimated",
               absl::StrCat("spec.storage.dramBytesPerServer is not set: ", slot.name(), " keeps ",
                            BinarySize(kept), " of its ", BinarySize(whole),
                            " of memory for the job, an estimate with ", need.rows,
                            " rows of features; a limit bounds it"),
               now);
  }
}

void JobMachine::Reserve(Rooms& rooms) const {
  if (over() || state_.servers_size() == 0) return;
  const ServerNeed& need =
      Need(static_cast<uint32_t>(state_.shards_size() / state_.servers_size()));
  for (int i = 0; i < state_.servers_size(); ++i) {
    const auto room = rooms.find(state_.servers(i).name());
    if (room == rooms.end()) continue;
    // More rows than were thought of are counted as they come.
    uint64_t rows = 0;
    for (const ShardReport& shard : servers_[static_cast<size_t>(i)].last.shards()) {
      rows += shard.dram_bytes();
    }
    ServerNeed here = need;
    if (need.guessed && rows > need.row_bytes) {
      const uint64_t step = std::max<uint64_t>(1, need.row_bytes / kGrowth);
      const uint64_t more = (rows - need.row_bytes + step - 1) / step * step;
      here.likely.set_dram_bytes(here.likely.dram_bytes() + more);
    }
    room->second.held.push_back(
        {spec_.spec().metadata().name(), ReservedOn(here, room->second.whole)});
  }
}

}  // namespace strata::scheduler
