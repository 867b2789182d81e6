#include "tools/cluster/export/delta.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/strata/checkpoint.pb.h"
#include "storage/row/hash.h"
#include "tools/cluster/checkpoint/row_changes.h"

namespace strata {

std::string DeltaFileName(const CheckpointRows* before, const CheckpointRows& after) {
  return absl::StrFormat("delta-%012d-%012d.strata", before ? before->manifest().step() : 0,
                         after.manifest().step());
}

storage::DeltaPoint DeltaPointOf(const CheckpointRows& rows) {
  storage::DeltaPoint point;
  point.step = rows.manifest().step();
  for (const CheckpointFile& file : rows.manifest().files()) {
    point.hash += storage::HashSum{.low = file.hash_low(), .high = file.hash_high()};
  }
  return point;
}

absl::StatusOr<storage::DeltaSummary> WriteDelta(const std::string& path,
                                                 const CheckpointRows* before,
                                                 const CheckpointRows& after,
                                                 const DeltaExportOptions& options) {
  storage::DeltaHeader header;
  header.with_state = options.with_state;
  header.whole = before == nullptr;
  header.all_tables = options.table.empty();
  if (before != nullptr) header.from = DeltaPointOf(*before);
  header.to = DeltaPointOf(after);
  std::vector<std::string> names;
  for (uint32_t t = 0; t < after.tables().tables.size(); ++t) {
    const TableSpec& table = after.tables().tables[t];
    names.push_back(table.name);
    if (!options.table.empty() && table.name != options.table) continue;
    header.tables.push_back(
        {table.id, table.kind, after.layout(t).dim, after.layout(t).state_floats});
  }
  if (header.tables.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no table '", options.table, "'; the model has ",
                                                   absl::StrJoin(names, " and ")));
  }
  auto writer = storage::DeltaWriter::Create(path, header, *options.system);
  if (!writer.ok()) return writer.status();
  for (const storage::DeltaTable& table : header.tables) {
    const size_t row_bytes = header.row_bytes(table);
    absl::Status s = VisitChanges(before, after, table.id.value,
                                  [&](Position position, const uint8_t*, const uint8_t* row) {
                                    if (row == nullptr)
                                      return (*writer)->Delete(table.id, position);
                                    return (*writer)->Upsert(table.id, position, {row, row_bytes});
                                  });
    if (!s.ok()) return s;
  }
  return (*writer)->Finish();
}

}  // namespace strata
