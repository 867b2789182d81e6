#include "tests/e2e/p3/embedded_axes.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace strata::testing {
namespace {

constexpr uint32_t kNodes[] = {1, 2, 3};
constexpr Tiers kTiers[] = {
    {"DRAM"},
    {"a row file", "rowfile"},
    {"RocksDB", "rocksdb"},
    {"HBM", "", "few"},
    {"HBM for all rows", "", "16MiB"},
    {"HBM above a row file", "rowfile", "few"},
};
constexpr const char* kDisturbances[] = {
    "calm",
    "a server is lost",
    "all servers are lost",
    "a worker is lost",
    "a worker is lost for good",
    "all servers and a worker are lost",
    "goes on elsewhere",
};
constexpr double kWhen[] = {0.5, 0.05, 0.75};
constexpr TicketTrouble kTickets[] = {
    {"tickets"},
    {"every third ticket lost", 0, 3},
    {"all tickets lost", 0, 1},
    {"every second ticket not given", 2, 0},
    {"no tickets given", 1, 0},
};
constexpr const char* kEvictions[] = {"", "lru", "lfu"};
constexpr uint32_t kThreads[] = {1, 2};
constexpr uint32_t kDepths[] = {4, 1, 2};
constexpr const char* kDurabilities[] = {"", "memory", "synced"};
constexpr const char* kLogBytes[] = {"", "64KiB"};
constexpr uint32_t kCuts[] = {0, 12};
constexpr uint32_t kShards[] = {4, 1};

enum Axis : size_t {
  kModelAxis,
  kServersAxis,
  kWorkersAxis,
  kTiersAxis,
  kDisturbanceAxis,
  kWhenAxis,
  kTicketsAxis,
  kEvictionAxis,
  kAvx2Axis,
  kThreadsAxis,
  kDepthAxis,
  kDurabilityAxis,
  kLogBytesAxis,
  kCutsAxis,
  kShardsAxis,
  kIntoHbmAxis,
};
static_assert(kDisturbanceAxis + 1 == kMainAxes);

bool IsBelow(const Tiers& tiers) { return tiers.ssd[0] != '\0'; }
bool HasHbm(const Tiers& tiers) { return tiers.hbm_bytes[0] != '\0'; }

bool MayMeet(size_t a, size_t x, size_t b, size_t y) {
  if (a == kModelAxis && b == kTiersAxis) {
    const Model& model = Models()[x];
    return (model.dram[0] != '\0' || !IsBelow(kTiers[y])) &&
           (model.hbm[0] != '\0' || !HasHbm(kTiers[y]));
  }
  // Small models show what models do; what happens to clusters is for those with many rows.
  const bool small = a == kModelAxis && Models()[x].dram[0] == '\0';
  if (small && b == kDisturbanceAxis) {
    const auto what = static_cast<Disturbance>(y);
    return what == Disturbance::kNone || what == Disturbance::kNearlyAll;
  }
  if (small && b == kTicketsAxis) return y < 2;
  if (a == kModelAxis && b == kShardsAxis) return kShards[y] == 1 || !Models()[x].one_shard;
  if (a == kModelAxis && b == kIntoHbmAxis) return y == 0 || Models()[x].hbm[0] != '\0';
  if (a == kServersAxis && b == kDisturbanceAxis) {
    const auto what = static_cast<Disturbance>(y);
    return kNodes[x] > 1 || what != Disturbance::kAllServers;  // with one they are a server
  }
  if (a == kWorkersAxis && b == kDisturbanceAxis) {
    return kNodes[x] > 1 || static_cast<Disturbance>(y) != Disturbance::kWorkerGone;
  }
  if (a == kTiersAxis && b == kEvictionAxis) {
    return y == 0 || IsBelow(kTiers[x]) || HasHbm(kTiers[x]);
  }
  if (a == kDisturbanceAxis && b == kCutsAxis) {
    return static_cast<Disturbance>(x) != Disturbance::kGoesOnElsewhere || kCuts[y] > 0;
  }
  return true;
}

}  // namespace

bool EmbeddedRow::servers_die() const {
  return disturbance == Disturbance::kServer || disturbance == Disturbance::kAllServers ||
         disturbance == Disturbance::kNearlyAll;
}

bool EmbeddedRow::workers_die() const {
  return disturbance == Disturbance::kWorker || disturbance == Disturbance::kWorkerGone ||
         disturbance == Disturbance::kNearlyAll;
}

Axes EmbeddedAxes() {
  return {{Models().size(), std::size(kNodes), std::size(kNodes), std::size(kTiers),
           std::size(kDisturbances), std::size(kWhen), std::size(kTickets), std::size(kEvictions),
           2, std::size(kThreads), std::size(kDepths), std::size(kDurabilities),
           std::size(kLogBytes), std::size(kCuts), std::size(kShards), 2},
          MayMeet};
}

EmbeddedRow EmbeddedRowOf(const Row& row) {
  return {.model = &Models()[row[kModelAxis]],
          .servers = kNodes[row[kServersAxis]],
          .workers = kNodes[row[kWorkersAxis]],
          .tiers = kTiers[row[kTiersAxis]],
          .disturbance = static_cast<Disturbance>(row[kDisturbanceAxis]),
          .when = kWhen[row[kWhenAxis]],
          .tickets = kTickets[row[kTicketsAxis]],
          .eviction = kEvictions[row[kEvictionAxis]],
          .avx2 = row[kAvx2Axis] == 1,
          .threads = kThreads[row[kThreadsAxis]],
          .depth = kDepths[row[kDepthAxis]],
          .durability = kDurabilities[row[kDurabilityAxis]],
          .log_bytes = kLogBytes[row[kLogBytesAxis]],
          .cuts = kCuts[row[kCutsAxis]],
          .shards = kShards[row[kShardsAxis]],
          .into_hbm = row[kIntoHbmAxis] == 1};
}

std::string ToText(const EmbeddedRow& row) {
  const auto or_default = [](const char* text) { return text[0] == '\0' ? "default" : text; };
  return absl::StrCat(
      row.model->name, "; ", row.servers, " servers of ", row.shards, " shards, ", row.workers,
      " workers; ", row.tiers.name, ", eviction ", or_default(row.eviction), "; ",
      kDisturbances[static_cast<size_t>(row.disturbance)],
      row.disturbance == Disturbance::kGoesOnElsewhere && row.into_hbm ? " in HBM" : "", " at ",
      row.when, "; ", row.tickets.name, "; ", row.avx2 ? "AVX2, " : "", row.threads,
      " threads, depth ", row.depth, "; durability ", or_default(row.durability), ", log ",
      or_default(row.log_bytes), ", cuts ", row.cuts);
}

TrainingJob JobOf(const EmbeddedRow& row, TrainingJob job) {
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(row.servers);
  spec.mutable_replicas()->set_workers(row.workers);
  spec.mutable_training()->set_threads(row.threads);
  spec.mutable_training()->set_pipeline_depth(row.depth);
  StorageSpec& storage = *spec.mutable_storage();
  storage.set_shards_per_server(row.shards);
  if (IsBelow(row.tiers)) {
    storage.set_ssd(row.tiers.ssd);
    storage.set_dram_bytes_per_server(row.model->dram);
  }
  if (HasHbm(row.tiers)) {
    const std::string bytes = row.tiers.hbm_bytes;
    storage.set_gpu_bytes_per_server(bytes == "few" ? row.model->hbm : bytes);
    storage.set_gpu_backend("host");
  }
  if (row.eviction[0] != '\0') storage.set_eviction(row.eviction);
  if (row.durability[0] != '\0') storage.set_durability(row.durability);
  if (row.log_bytes[0] != '\0') storage.set_log_bytes_per_server(row.log_bytes);
  if (row.cuts > 0) {
    spec.mutable_checkpoint()->set_every_steps(row.cuts);
    spec.mutable_checkpoint()->set_full_every(2);
  }
  return job;
}

EmbeddedRow ElsewhereOf(const EmbeddedRow& row) {
  EmbeddedRow other = row;
  other.disturbance = Disturbance::kNone;
  other.when = 0.5;
  other.servers = row.servers % 3 + 1;
  other.workers = row.workers % 3 + 1;
  other.tiers.name = "elsewhere";
  if (IsBelow(row.tiers)) {
    other.tiers.ssd = std::string(row.tiers.ssd) == "rowfile" ? "rocksdb" : "rowfile";
  }
  other.tiers.hbm_bytes = row.into_hbm ? "few" : "";
  if (!IsBelow(other.tiers) && !row.into_hbm) other.eviction = "";
  return other;
}

}  // namespace strata::testing
