#include "tests/e2e/p3/process_axes.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/e2e/p3/models.h"

namespace strata::testing {
namespace {

constexpr const char* kStories[] = {"calm",
                                    "killed around commits",
                                    "killed around files",
                                    "two servers killed together",
                                    "a server and a worker killed",
                                    "anything killed",
                                    "commits fail"};
constexpr const char* kWhen[] = {"early", "in the middle", "late"};

struct Tiers {
  const char* ssd;
  bool hbm;
};
constexpr Tiers kTiers[] = {{"", false}, {"rowfile", true}, {"rocksdb", false}};
constexpr uint32_t kWorkers[] = {3, 2, 1};
constexpr const char* kLogBytes[] = {"64KiB", ""};
constexpr const char* kDurabilities[] = {"", "synced", "memory"};
constexpr uint32_t kDepths[] = {4, 1};
constexpr uint32_t kThreads[] = {1, 2};
constexpr uint32_t kCuts[] = {0, 20};

enum Axis : size_t {
  kClusterAxis,
  kModelAxis,
  kStoryAxis,
  kWhenAxis,
  kTiersAxis,
  kWorkersAxis,
  kLogBytesAxis,
  kDurabilityAxis,
  kDepthAxis,
  kThreadsAxis,
  kCutsAxis,
};
static_assert(kTiersAxis + 1 == kMainProcessAxes);

bool MayMeet(size_t a, size_t x, size_t b, size_t y) {
  if (a == kClusterAxis && b == kStoryAxis) {
    return Clusters()[x].servers > 1 || static_cast<Story>(y) != Story::kTogether;
  }
  // Images are made where the log is short.
  if (a == kStoryAxis && b == kLogBytesAxis) {
    return static_cast<Story>(x) != Story::kFiles || kLogBytes[y][0] != '\0';
  }
  // At level memory a server's end rolls the job back: a case of its own.
  if (a == kStoryAxis && b == kDurabilityAxis) {
    const auto story = static_cast<Story>(x);
    return absl::string_view(kDurabilities[y]) != "memory" || story == Story::kCalm ||
           story == Story::kErrors;
  }
  return true;
}

const Model& ModelNamed(const std::string& name) {
  for (const Model& model : Models()) {
    if (name == model.name) return model;
  }
  return Models().front();
}

}  // namespace

const std::vector<Cluster>& Clusters() {
  static const std::vector<Cluster> clusters = {{2, false}, {3, true}, {1, true}};
  return clusters;
}

const std::vector<std::string>& ProcessModels() {
  static const std::vector<std::string> models = {"deepfm", "score", "many optimizers",
                                                  "five tables", "three labels, weights"};
  return models;
}

Axes ProcessAxes() {
  return {{Clusters().size(), ProcessModels().size(), std::size(kStories), std::size(kWhen),
           std::size(kTiers), std::size(kWorkers), std::size(kLogBytes), std::size(kDurabilities),
           std::size(kDepths), std::size(kThreads), std::size(kCuts)},
          MayMeet};
}

ProcessRow ProcessRowOf(const Row& row) {
  return {.model = ProcessModels()[row[kModelAxis]],
          .cluster = Clusters()[row[kClusterAxis]],
          .story = static_cast<Story>(row[kStoryAxis]),
          .when = row[kWhenAxis],
          .ssd = kTiers[row[kTiersAxis]].ssd,
          .hbm = kTiers[row[kTiersAxis]].hbm,
          .workers = kWorkers[row[kWorkersAxis]],
          .log_bytes = kLogBytes[row[kLogBytesAxis]],
          .durability = kDurabilities[row[kDurabilityAxis]],
          .depth = kDepths[row[kDepthAxis]],
          .threads = kThreads[row[kThreadsAxis]],
          .cuts = kCuts[row[kCutsAxis]]};
}

std::string ToText(const ProcessRow& row) {
  const auto or_default = [](const char* text) { return text[0] == '\0' ? "default" : text; };
  return absl::StrCat(row.model, "; ", row.cluster.servers, " servers",
                      row.cluster.direct_log ? " with direct logs" : "", ", ", row.workers,
                      " workers; ", kStories[static_cast<size_t>(row.story)], " ", kWhen[row.when],
                      "; SSD ", or_default(row.ssd), row.hbm ? " and HBM" : "", "; log ",
                      or_default(row.log_bytes), ", durability ", or_default(row.durability),
                      ", depth ", row.depth, ", ", row.threads, " threads, cuts ", row.cuts);
}

TrainingJob JobOf(const ProcessRow& row, TrainingJob job) {
  const Model& model = ModelNamed(row.model);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(static_cast<uint32_t>(row.cluster.servers));
  spec.mutable_replicas()->set_workers(row.workers);
  spec.mutable_training()->set_threads(row.threads);
  spec.mutable_training()->set_pipeline_depth(row.depth);
  StorageSpec& storage = *spec.mutable_storage();
  if (row.ssd[0] != '\0') {
    storage.set_ssd(row.ssd);
    storage.set_dram_bytes_per_server(model.dram_of_four[0] != '\0' ? model.dram_of_four
                                                                    : model.dram);
  }
  if (row.hbm) {
    storage.set_gpu_bytes_per_server(model.hbm);
    storage.set_gpu_backend("host");
  }
  if (row.log_bytes[0] != '\0') storage.set_log_bytes_per_server(row.log_bytes);
  if (row.durability[0] != '\0') storage.set_durability(row.durability);
  if (row.cuts > 0) spec.mutable_checkpoint()->set_every_steps(row.cuts);
  return job;
}

std::vector<std::string> PlacesOf(const ProcessRow& row) {
  // Four shards a server, and some 80 steps: some 320 commits.
  constexpr int kHits[][3] = {{1, 2, 3}, {80, 41, 40}, {201, 4, 83}};
  const auto kill = [](const char* place, int hit) { return absl::StrCat(place, "=kill@", hit); };
  const auto& hits = kHits[row.when];
  switch (row.story) {
    case Story::kCommits:
      return {kill("server.commit.append", hits[0]), kill("server.commit.appended", hits[1]),
              kill("server.commit.applied", hits[2])};
    case Story::kWorkerToo:
      return {kill("server.commit.appended", hits[0])};
    case Story::kFiles: {
      std::vector<std::string> places = {
          kill("server.image", 1 + static_cast<int>(row.when)),
          kill("server.snapshot.finish", 2 - static_cast<int>(row.when) / 2)};
      // With HBM there may be room for all rows above it.
      if (row.ssd[0] != '\0' && !row.hbm)
        places.push_back(kill("tier.read", 1 + 10 * hits[1] / 40));
      if (ModelNamed(row.model).life_cycle)
        places.push_back(kill("removed.ended", 1 + hits[1] / 8));
      return places;
    }
    default:
      return {};
  }
}

}  // namespace strata::testing
