// The index of an export: what was exported, from where, and which file holds which array.
// Tested by tests/tools/cluster/export/export_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_INDEX_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_INDEX_H_

#include <cstdint>
#include <map>
#include <string>

#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "tools/cluster/export/plan.h"

namespace strata {

// JSON: for npy one object, for safetensors Hugging Face's {"metadata": {"total_size", "strata":
// that object}, "weight_map": {array: file}}. `checksums`: CRC32C by array. A pure function.
struct ExportedCheckpoint {
  std::string folder;
  const Manifest& manifest;
  const Manifest* since = nullptr;  // null: all rows, not what changed
};
std::string ExportIndexText(const ExportPlan& plan, const ModelTables& tables,
                            const ExportedCheckpoint& checkpoint,
                            const std::map<std::string, uint32_t>& checksums);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_INDEX_H_
