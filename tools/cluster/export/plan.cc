#include "tools/cluster/export/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/job/schema/schema.h"
#include "storage/row/layout.h"

namespace strata {
namespace {

using storage::RowLayout;
using storage::SegmentLayout;

uint64_t Size(ExportType type) { return type == ExportType::kU64 ? 8 : 4; }

ExportArray Array(std::string name, ExportType type, std::vector<uint64_t> shape,
                  uint32_t row_offset, uint32_t row_bytes) {
  ExportArray a;
  a.name = std::move(name);
  a.type = type;
  a.shape = std::move(shape);
  a.row_offset = row_offset;
  a.row_bytes = row_bytes;
  a.bytes = Size(type);
  for (uint64_t n : a.shape) a.bytes *= n;
  return a;
}

ExportArray Floats(std::string name, std::vector<uint64_t> shape, uint32_t first, uint32_t count) {
  return Array(std::move(name), ExportType::kF32, std::move(shape), first * 4, count * 4);
}

void AddMeta(const std::string& prefix, const RowLayout& layout, uint64_t rows,
             std::vector<ExportArray>& out) {
  const auto at = static_cast<uint32_t>(layout.meta_offset());
  out.push_back(Array(prefix + "last_step", ExportType::kU32, {rows}, at, 4));
  out.push_back(Array(prefix + "updates", ExportType::kU32, {rows}, at + 4, 4));
}

// Rows of a hashed table.
ExportBlock FeatureBlock(const TableSpec& table, const std::string& prefix, uint64_t rows,
                         bool with_state) {
  const RowLayout layout = RowLayout::For(table);
  ExportBlock block;
  block.rows = rows;
  block.arrays.push_back(Array(prefix + "keys", ExportType::kU64, {rows}, 0, 8));
  block.arrays.back().is_key = true;
  for (size_t s = 0; s < table.segments.size(); ++s) {
    const SegmentLayout& segment = layout.segments[s];
    const std::string name = prefix + table.segments[s].name;
    block.arrays.push_back(Floats(name, {rows, segment.dim}, segment.weight_offset, segment.dim));
    uint32_t at = segment.state_offset;
    if (!with_state) continue;
    for (const StateArray& state :
         StateArrays(table.segments[s].optimizer.type, segment.dim, segment.state_floats)) {
      block.arrays.push_back(Floats(absl::StrCat(name, ".state.", state.name), {rows, state.floats},
                                    at, state.floats));
      at += state.floats;
    }
  }
  if (with_state && layout.scored) {
    const auto at = static_cast<uint32_t>(layout.score_offset());
    block.arrays.push_back(Array(prefix + "score", ExportType::kF32, {rows}, at, 4));
  }
  if (with_state) AddMeta(prefix, layout, rows, block.arrays);
  return block;
}

// A hashed table may be called as a tensor is, and both have arrays of their rows' numbers. No
// hashed table is called as the dense one.
std::string MetaPrefix(const ModelTables& tables, const std::string& tensor) {
  for (const TableSpec& table : tables.tables) {
    if (table.name == tensor) {
      return absl::StrCat(tables.tables[ModelTables::kDenseTable].name, ".", tensor, ".");
    }
  }
  return absl::StrCat(tensor, ".");
}

ExportBlock TensorBlock(const ModelTables& tables, size_t number, bool with_state) {
  const TableSpec& table = tables.tables[1];
  const TensorSpec& tensor = tables.tensor(number);
  const RowLayout layout = RowLayout::For(table);
  const SegmentLayout& segment = layout.segments[0];
  const std::vector<uint64_t> shape = TensorShape(tables, number);
  ExportBlock block;
  block.tensor = number;
  block.rows = tensor.Rows(layout.dim);
  block.arrays.push_back(Floats(tensor.name, shape, 0, layout.dim));
  if (!with_state) return block;
  uint32_t at = segment.state_offset;
  for (const StateArray& state :
       StateArrays(table.segments[0].optimizer.type, segment.dim, segment.state_floats)) {
    // State of every weight has the weights' shape, state of a whole row has the rows'.
    const std::vector<uint64_t> rows = {block.rows, state.floats};
    block.arrays.push_back(Floats(absl::StrCat(tensor.name, ".state.", state.name),
                                  state.floats == layout.dim ? shape : rows, at, state.floats));
    at += state.floats;
  }
  AddMeta(MetaPrefix(tables, tensor.name), layout, block.rows, block.arrays);
  return block;
}

ExportBlock RemovedBlock(const TableSpec& table, uint32_t index, uint64_t keys) {
  ExportBlock block;
  block.removed = true;
  block.table = index;
  block.rows = keys;
  block.arrays.push_back(Array(table.name + ".removed_keys", ExportType::kU64, {keys}, 0, 8));
  block.arrays.back().is_key = true;
  return block;
}

uint64_t BytesOf(const ExportBlock& block) {
  uint64_t bytes = 0;
  for (const ExportArray& a : block.arrays) bytes += a.bytes;
  return bytes;
}

// A table that fits one file keeps short names; else its rows are cut into parts of equal size.
void AddFeatures(const TableSpec& table, uint32_t index, uint64_t rows,
                 const ExportPlanOptions& options, std::vector<ExportBlock>& out) {
  const uint64_t row = BytesOf(FeatureBlock(table, "", 1, options.with_state));
  const uint64_t most = options.format == ExportFormat::kNpy
                            ? std::max<uint64_t>(rows, 1)
                            : std::max<uint64_t>(options.shard_bytes / row, 1);
  const uint64_t parts = std::max<uint64_t>((rows + most - 1) / most, 1);
  for (uint64_t p = 0; p < parts; ++p) {
    const std::string prefix =
        parts == 1 ? absl::StrCat(table.name, ".")
                   : absl::StrFormat("%s.part-%05d-of-%05d.", table.name, p + 1, parts);
    const uint64_t count = std::min(most, rows - p * most);
    out.push_back(FeatureBlock(table, prefix, count, options.with_state));
    out.back().table = index;
    out.back().part = static_cast<uint32_t>(p);
  }
}

std::string ShapeText(const std::vector<uint64_t>& shape, const char* one) {
  return absl::StrCat(absl::StrJoin(shape, ", "), shape.size() == 1 ? one : "");
}

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0.
std::string NpyHeader(const ExportArray& a) {
  std::string text =
      absl::StrCat("{'descr': '",
                   a.type == ExportType::kU64   ? "<u8"
                   : a.type == ExportType::kU32 ? "<u4"
                                                : "<f4",
                   "', 'fortran_order': False, 'shape': (", ShapeText(a.shape, ","), "), }");
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  const auto size = static_cast<uint16_t>(text.size());
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(size & 0xff);
  header += static_cast<char>(size >> 8);
  return header + text;
}

void MakeNpyFiles(ExportPlan& plan) {
  for (ExportBlock& block : plan.blocks) {
    for (ExportArray& a : block.arrays) {
      ExportFile file;
      file.name = absl::StrCat(a.name, ".npy");
      file.header = NpyHeader(a);
      a.file = plan.files.size();
      a.offset = file.header.size();
      file.bytes = a.offset + a.bytes;
      plan.files.push_back(std::move(file));
    }
  }
}

// https://github.com/huggingface/safetensors: u64 size of the header, JSON, bytes without holes.
std::string SafetensorsHeader(const std::vector<const ExportArray*>& arrays) {
  std::string text = R"({"__metadata__":{"format":"pt","generator":"strata"})";
  uint64_t at = 0;
  for (const ExportArray* a : arrays) {
    absl::StrAppend(&text, ",\"", a->name, "\":{\"dtype\":\"",
                    TypeName(a->type, ExportFormat::kSafetensors), "\",\"shape\":[",
                    absl::StrJoin(a->shape, ","), "],\"data_offsets\":[", at, ",", at + a->bytes,
                    "]}");
    at += a->bytes;
  }
  text += '}';
  while (text.size() % 8 != 0) text += ' ';
  std::string header(8, '\0');
  for (int i = 0; i < 8; ++i) header[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return header + text;
}

void MakeSafetensorsFiles(uint64_t shard_bytes, ExportPlan& plan) {
  uint64_t held = 0;
  for (ExportBlock& block : plan.blocks) {
    const uint64_t bytes = BytesOf(block);
    if (plan.files.empty() || (held > 0 && held + bytes > shard_bytes)) {
      plan.files.emplace_back();
      held = 0;
    }
    held += bytes;
    for (ExportArray& a : block.arrays) a.file = plan.files.size() - 1;
  }
  std::vector<std::vector<ExportArray*>> arrays(plan.files.size());
  for (ExportBlock& block : plan.blocks) {
    for (ExportArray& a : block.arrays) arrays[a.file].push_back(&a);
  }
  for (size_t f = 0; f < plan.files.size(); ++f) {
    // Eight-byte types first: then every array is aligned.
    std::stable_sort(
        arrays[f].begin(), arrays[f].end(),
        [](const ExportArray* a, const ExportArray* b) { return Size(a->type) > Size(b->type); });
    ExportFile& file = plan.files[f];
    file.name = absl::StrFormat("model-%05d-of-%05d.safetensors", f + 1, plan.files.size());
    file.header = SafetensorsHeader({arrays[f].begin(), arrays[f].end()});
    file.bytes = file.header.size();
    for (ExportArray* a : arrays[f]) {
      a->offset = file.bytes;
      file.bytes += a->bytes;
    }
  }
}

}  // namespace

uint64_t ExportPlan::DataBytes() const {
  uint64_t bytes = 0;
  for (const ExportBlock& block : blocks) bytes += BytesOf(block);
  return bytes;
}

const char* TypeName(ExportType type, ExportFormat format) {
  const bool npy = format == ExportFormat::kNpy;
  if (type == ExportType::kU64) return npy ? "uint64" : "U64";
  if (type == ExportType::kU32) return npy ? "uint32" : "U32";
  return npy ? "float32" : "F32";
}

std::vector<StateArray> StateArrays(OptimizerType type, uint32_t dim, uint32_t state_floats) {
  if (state_floats == 0) return {};
  const std::vector<std::string> names = OptimizerStateNames(type);
  const auto count = static_cast<uint32_t>(names.size());
  // Of every weight, or one for the row.
  if (count > 0 && (state_floats == count * dim || state_floats == count)) {
    std::vector<StateArray> out;
    for (const std::string& name : names) out.push_back({name, state_floats / count});
    return out;
  }
  return {{"values", state_floats}};
}

absl::StatusOr<ExportPlan> PlanExport(const ModelTables& tables, const std::vector<uint64_t>& rows,
                                      const ExportPlanOptions& options,
                                      const std::vector<uint64_t>& removed) {
  if (options.shard_bytes == 0) {
    return absl::InvalidArgumentError("the size of a shard is 0 bytes; it must be at least 1");
  }
  ExportPlan plan;
  plan.format = options.format;
  bool found = false;
  std::vector<std::string> names;
  for (uint32_t t = 0; t < tables.tables.size(); ++t) {
    const TableSpec& table = tables.tables[t];
    names.push_back(table.name);
    if (!options.table.empty() && table.name != options.table) continue;
    found = true;
    if (table.kind == TableKind::kHashed) {
      AddFeatures(table, t, rows[t], options, plan.blocks);
      if (!removed.empty()) plan.blocks.push_back(RemovedBlock(table, t, removed[t]));
      continue;
    }
    for (size_t number = 0; number < tables.tensor_count(); ++number) {
      plan.blocks.push_back(TensorBlock(tables, number, options.with_state));
      plan.blocks.back().table = t;
    }
  }
  if (!found) {
    return absl::InvalidArgumentError(absl::StrCat("no table '", options.table, "'; the model has ",
                                                   absl::StrJoin(names, " and ")));
  }
  if (options.format == ExportFormat::kNpy) {
    MakeNpyFiles(plan);
  } else {
    MakeSafetensorsFiles(options.shard_bytes, plan);
  }
  return plan;
}

}  // namespace strata
