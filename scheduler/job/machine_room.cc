// JobMachine: what it keeps of its servers, and which servers have that free.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "proto/job/memory_need.h"
#include "proto/job/schema/schema_vocabulary.h"
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
    for (const InputTask& task : index_->train().tasks()) data.bytes += task.bytes();
    for (const auto& [file, content] : VocabulariesOf(index_->train())) {
      data.vocabularies[file] = content.values;
    }
  }
  need_ = NeedOfServer(job(), data, shards);
  // Servers count the disk of their own folders.
  if (!job().storage().directory().empty()) need_.likely.clear_disk_bytes();
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
void JobMachine::WaitForServers(const ClusterView& cluster, const absl::Status& why,
                                absl::Time now) {
  const std::string text =
      GoesOnWithServers() ? DescribeMissing(why.message()) : std::string(why.message());
  SayAgain(absl::IsResourceExhausted(why)    ? "WaitingForRoom"
           : absl::IsFailedPrecondition(why) ? "WaitingForZones"
                                             : "WaitingForServers",
           text, now);
  state_.set_phase(WAITING);
  state_.clear_workers();
  workers_.clear();
  EndWithoutRoom(cluster, now);
}

// At submit not all servers may be there, and they may come back with more: what no server could
// ever take ends only when that was seen for a lease. As with the silence of nodes, time in which
// the scheduler did not look counts for little.
void JobMachine::EndWithoutRoom(const ClusterView& cluster, absl::Time now) {
  const absl::Status fits =
      cluster.rooms ? CheckRoom(job(), *cluster.members, cluster.rooms()) : absl::OkStatus();
  if (fits.ok()) {
    no_room_ = {};
    return;
  }
  const absl::Duration lease = cluster.members->lease();
  if (no_room_.looked) {
    no_room_.seen +=
        std::clamp(now - *no_room_.looked, absl::ZeroDuration(), lease / Membership::kLooks);
  }
  no_room_.looked = now;
  if (no_room_.seen >= lease) End(FAILED, "NoRoom", fits.message(), now);
}

// That it is an estimate is told with the job's status. Where it keeps others from a server, users
// should know at once what would bound it.
void JobMachine::SayGuess(const ClusterView& cluster, absl::Time now) {
  if (!job().storage().directory().empty()) {
    Say("DiskNotCounted",
        absl::StrCat("spec.storage.directory ", job().storage().directory(),
                     ": disk is counted in servers' own folders alone; see that there is enough"),
        now);
  }
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

bool JobMachine::KeepsRoomOn(absl::string_view server) const {
  if (!over()) return Hosts(server);
  const auto& closing = state_.closing();
  return std::find(closing.begin(), closing.end(), server) != closing.end();
}

void JobMachine::Reserve(Rooms& rooms) const {
  if (state_.servers_size() == 0 || STRATA_MUTATION("room.reservation_forgotten")) return;
  if (over() && state_.closing().empty()) return;
  const ServerNeed& need =
      Need(static_cast<uint32_t>(state_.shards_size() / state_.servers_size()));
  for (const auto& [name, last] : LastOfCopies()) {
    if (const auto room = rooms.find(name); room != rooms.end() && KeepsRoomOn(name)) {
      ReserveOn(need, *last, room->second);
    }
  }
}

// By copy: its server, and what that said last.
std::vector<std::pair<std::string, const ServerJobReport*>> JobMachine::LastOfCopies() const {
  std::vector<std::pair<std::string, const ServerJobReport*>> all;
  for (int i = 0; i < state_.servers_size(); ++i) {
    const ServerView& view = servers_[static_cast<size_t>(i)];
    if (!state_.servers(i).has_chain()) all.emplace_back(state_.servers(i).name(), &view.last);
    for (const auto& [name, copy] : view.chain.copies) all.emplace_back(name, &copy.last);
  }
  return all;
}

void JobMachine::ReserveOn(const ServerNeed& need, const ServerJobReport& last,
                           ServerRoom& room) const {
  // More rows than were thought of are counted as they come.
  uint64_t rows = 0;
  for (const ShardReport& shard : last.shards()) rows += shard.dram_bytes();
  ServerNeed here = need;
  if (need.guessed && rows > need.row_bytes) {
    const uint64_t step = std::max<uint64_t>(1, need.row_bytes / kGrowth);
    const uint64_t more = (rows - need.row_bytes + step - 1) / step * step;
    here.likely.set_dram_bytes(here.likely.dram_bytes() + more);
    // They are there, though a server's share may be less by now.
    here.least.set_dram_bytes(std::max(here.least.dram_bytes(), rows / step * step));
  }
  // So are its files: what was thought of them may be more than the share.
  if (job().storage().directory().empty() && !STRATA_MUTATION("room.files_forgotten")) {
    here.least.set_disk_bytes(std::max<uint64_t>(here.least.disk_bytes(), last.disk_bytes()));
  }
  const std::string& name = spec_.spec().metadata().name();
  room.held.push_back({over() ? absl::StrCat(name, " (closing)") : name,
                       ReservedOn(here, room.whole),
                       need.guessed ? std::max<uint64_t>(1, need.rows) : 0});
}

}  // namespace strata::scheduler
