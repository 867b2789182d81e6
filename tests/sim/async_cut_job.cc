#include "tests/sim/async_cut_job.h"

#include <cmath>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "server/table/gpu_memory.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/eviction/kind.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::sim {
namespace {

// Applied once, a window moves the weight by so much: the gradient is 1, the rate .1.
constexpr float kOnce = 0.1f;

bool BeforeMark(const Window& w, const server::LaneMark& mark) {
  return w.first < mark.task.value || (w.first == mark.task.value && w.second < mark.next_window);
}

}  // namespace

AsyncCutJob::AsyncCutJob(const AsyncCutOptions& options) : o_(options) {
  const Partitioning partitioning(server::kPartitions);
  for (const PartitionRange& range : server::Ranges(o_.shards)) {
    places_.push_back({range, partitioning.First(range.first), partitioning.Last(range.last)});
  }
}

std::vector<Window> AsyncCutJob::WindowsOf(uint32_t lane) const {
  std::vector<Window> windows;
  for (uint64_t t = 0; t < o_.tasks_per_lane; ++t) {
    for (uint64_t w = 0; w < o_.windows_per_task; ++w) windows.emplace_back(TaskOf(lane, t), w);
  }
  return windows;
}

server::ShardUpdate AsyncCutJob::UpdateOf(uint32_t shard, const Window& w) const {
  const Place& place = places_[shard];
  server::LaneWork work;
  work.examples = 1;
  work.sums[0][Position(place.first.value + RowOf(w))] = {0, 0, 0, 0, 1};
  return server::UpdateFor(work, place.first, place.last);
}

std::unique_ptr<server::Shard> AsyncCutJob::MakeShard(uint32_t shard,
                                                      storage::UpdateLog* log) const {
  const auto tables = server::TestTables();
  const uint64_t hbm_bytes =
      o_.hbm ? server::LeastGpuBytesPerServer(tables, storage::EvictionKind::kLrfu, 1) : 0;
  return server::MakeShard({.range = places_[shard].range,
                            .id = shard,
                            .lanes = o_.lanes,
                            .synchronous = false,
                            .log = log,
                            .hbm_bytes = hbm_bytes,
                            .tables = tables});
}

absl::Status AsyncCutJob::Count(uint32_t shard, const std::string& path, Counts& counts) const {
  auto reader = storage::ShardFileReader::Open(path);
  if (!reader.ok()) return reader.status();
  const size_t row_bytes = (*reader)->header().tables[0].row_bytes();
  return (*reader)->ReadRows(TableId(0), places_[shard].range,
                             [&](std::span<const Position> positions, const uint8_t* rows) {
                               for (size_t i = 0; i < positions.size(); ++i) {
                                 float weight;
                                 std::memcpy(&weight, rows + i * row_bytes + 4 * sizeof(float),
                                             sizeof weight);
                                 counts[positions[i].value - places_[shard].first.value] =
                                     static_cast<int>(std::lround(-weight / kOnce));
                               }
                               return absl::OkStatus();
                             });
}

std::string AsyncCutJob::CheckCut(uint32_t shard, const std::string& path,
                                  const server::ShardCut& cut,
                                  const std::vector<std::set<Window>>& of_the_dead) const {
  Counts counts;
  if (absl::Status s = Count(shard, path, counts); !s.ok()) return std::string(s.message());
  for (uint32_t lane = 0; lane < o_.lanes; ++lane) {
    for (const Window& w : WindowsOf(lane)) {
      const int times = counts[RowOf(w)];
      const bool before = BeforeMark(w, cut.marks.at(lane));
      const bool allowed = before || of_the_dead[lane].contains(w);
      if (times <= (allowed ? 1 : 0) && times >= (before ? 1 : 0)) continue;
      return absl::StrCat("shard ", shard, ", lane ", lane, ": window ", w.second, " of task ",
                          w.first, before ? ", before" : ", after", " the mark, is in it ", times,
                          " times");
    }
  }
  return CheckResumed(shard, path, cut);
}

std::string AsyncCutJob::CheckResumed(uint32_t shard, const std::string& path,
                                      const server::ShardCut& cut) const {
  auto resumed = MakeShard(shard, nullptr);
  auto reader = storage::ShardFileReader::Open(path);
  if (!reader.ok() || !resumed->Restore(**reader, Step(0)).ok()) return "not restored";
  for (uint32_t lane = 0; lane < o_.lanes; ++lane) {
    for (const Window& w : WindowsOf(lane)) {
      if (!BeforeMark(w, cut.marks.at(lane)) &&
          !resumed->ApplyWindow(TaskId(w.first), w.second, LaneId(lane), UpdateOf(shard, w)).ok()) {
        return "a window after the mark is refused";
      }
      float row[5];
      const std::vector<Position> at = {Position(places_[shard].first.value + RowOf(w))};
      if (!resumed->Read(TableId(0), at, row).ok() || std::lround(-row[4] / kOnce) != 1) {
        return absl::StrCat("resumed, shard ", shard, " has window ", w.second, " of task ",
                            w.first, " ", -row[4] / kOnce, " times");
      }
    }
  }
  return "";
}

}  // namespace strata::sim
