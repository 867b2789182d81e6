// What an export consists of, before a byte is read: arrays, and the files they lie in. Pure.
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_PLAN_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job/tables/model_tables.h"

namespace strata {

// kDelta: one file (storage/delta/file.h), without arrays.
enum class ExportFormat : uint8_t { kNpy = 0, kSafetensors = 1, kDelta = 2 };

enum class ExportType : uint8_t { kU64 = 0, kU32 = 1, kF32 = 2 };

// One array, row-major. Of every row it takes `row_bytes` bytes at `row_offset` (keys: the key);
// where rows hold more than `bytes` in all, the tail of the last row is padding and is left out.
struct ExportArray {
  std::string name;
  ExportType type = ExportType::kF32;
  std::vector<uint64_t> shape;
  bool is_key = false;
  uint32_t row_offset = 0;
  uint32_t row_bytes = 0;
  uint64_t bytes = 0;
  size_t file = 0;      // index into ExportPlan::files
  uint64_t offset = 0;  // of its first byte in the file
};

// Rows that are written together.
struct ExportBlock {
  bool removed = false;          // hashed: keys alone, of rows that are gone
  uint32_t table = 0;            // index into ModelTables::tables
  std::optional<size_t> tensor;  // dense: its number
  uint32_t part = 0;             // hashed: from 0
  uint64_t rows = 0;
  std::vector<ExportArray> arrays;
};

struct ExportFile {
  std::string name;
  std::string header;  // the file's first bytes
  uint64_t bytes = 0;  // of all
};

struct ExportPlan {
  ExportFormat format = ExportFormat::kNpy;
  std::vector<ExportBlock> blocks;  // tables in order, hashed ones by position, tensors by number
  std::vector<ExportFile> files;

  // Of arrays, without headers.
  uint64_t DataBytes() const;
};

struct ExportPlanOptions {
  ExportFormat format = ExportFormat::kNpy;
  bool with_state = false;
  std::string table;                         // only this one; empty: all
  uint64_t shard_bytes = uint64_t{4} << 30;  // safetensors: of arrays in a file, about
};

// `rows[t]`: rows that table t has, or that changed; removed[t], where there is a changes' export:
// keys of table t whose rows are gone. A pure function of its arguments. REQUIRES: not kDelta.
// INVALID_ARGUMENT: no such table (the text names those there are), or a shard_bytes of 0.
absl::StatusOr<ExportPlan> PlanExport(const ModelTables& tables, const std::vector<uint64_t>& rows,
                                      const ExportPlanOptions& options,
                                      const std::vector<uint64_t>& removed = {});

// "float32" (numpy) or "F32" (safetensors).
const char* TypeName(ExportType type, ExportFormat format);

// Optimizer state of a segment: names and floats a row, in the order of the bytes.
struct StateArray {
  std::string name;
  uint32_t floats = 0;
};
std::vector<StateArray> StateArrays(OptimizerType type, uint32_t dim, uint32_t state_floats);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_PLAN_H_
