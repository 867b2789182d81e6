#include "tools/cluster/checkpoint/row_life.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"
#include "server/protocol/life_cycle_admission.h"
#include "server/protocol/life_cycle_counters.h"
#include "server/protocol/life_cycle_removal.h"
#include "storage/checkpoint/shard_file.h"

namespace strata {
namespace {

const char* NameOf(server::RemovalRule rule) {
  constexpr const char* kNames[server::kRemovalRules] = {"",      "ttl",  "count",
                                                         "score", "norm", "bytes"};
  return kNames[static_cast<size_t>(rule)];
}

absl::StatusOr<uint32_t> WaitingSteps(const CheckpointRows& rows, const TableSpec& table,
                                      Position position) {
  const Manifest& manifest = rows.manifest();
  const Partitioning partitioning(manifest.partitions());
  const PartitionId partition = partitioning.Of(position);
  server::AdmissionFilter filter(table.life_cycle.admission, table.id,
                                 manifest.job().spec().training().seed(), partitioning);
  for (const CheckpointFile& file : manifest.files()) {
    if (partition.value < file.first_partition() || file.last_partition() < partition.value) {
      continue;
    }
    auto reader = storage::ShardFileReader::Open(absl::StrCat(rows.folder(), "/", file.name()));
    if (!reader.ok()) return reader.status();
    absl::Status s =
        (*reader)->ReadSectionsOf(server::AdmissionFilter::kSection, {partition, partition},
                                  [&](const storage::Section& section) {
                                    return filter.Load(section.partitions.first, section.bytes);
                                  });
    if (!s.ok()) return s;
  }
  return filter.StepsOf(position);
}

}  // namespace

absl::StatusOr<std::optional<RowLife>> LifeOf(const CheckpointRows& rows, uint32_t table,
                                              Position position, const uint8_t* row) {
  const TableSpec& spec = rows.tables().tables[table];
  if (spec.life_cycle == LifeCycleRules{}) return std::optional<RowLife>();
  RowLife life;
  const AdmissionRules& admission = spec.life_cycle.admission;
  const bool counts =
      admission.type == AdmissionType::kExact || admission.type == AdmissionType::kCounting;
  if (row == nullptr) {
    if (!counts) return std::optional<RowLife>(life);
    auto steps = WaitingSteps(rows, spec, position);
    if (!steps.ok()) return steps.status();
    life.waiting_steps = *steps;
    life.min_steps = admission.min_steps;
    return std::optional<RowLife>(life);
  }
  if (rows.manifest().job().spec().training().mode() != "bsp") return std::optional<RowLife>(life);
  const server::Removal removal(spec.life_cycle.removal, rows.layout(table));
  const uint64_t step = rows.manifest().step();
  storage::RowMeta meta;
  std::memcpy(&meta, row + rows.layout(table).meta_offset(), sizeof meta);
  life.idle_steps = server::Removal::Idle(meta.last_step, step);
  if (spec.life_cycle.scored()) life.score = removal.Score(row, step);
  life.removed_by = NameOf(removal.Judge(row, step));
  return std::optional<RowLife>(life);
}

}  // namespace strata
