// Steps of an export: 1 the checkpoint's tables and row counts (CheckpointRows; what changed is
// counted by CountChanges), 2 the plan (PlanExport), 3 the output folder (ExportFolder), 4 files of
// full size (ExportWriter::Allocate), 5 rows, block by block (WriteFeatures, WriteTensor), 6 the
// index, and all names (ExportFolder::Publish).
#include "tools/cluster/export/export.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/manifest_io.h"
#include "tools/cluster/checkpoint/row_changes.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/export/delta.h"
#include "tools/cluster/export/folder.h"
#include "tools/cluster/export/index.h"
#include "tools/cluster/export/writer.h"

namespace strata {
namespace {

using Blocks = std::vector<ExportBlock>;

// All parts of a hashed table, blocks[at] being the first; moves `at` behind the last.
absl::Status WriteFeatures(const CheckpointRows* before, const CheckpointRows& rows,
                           const Blocks& blocks, size_t& at, ExportWriter& writer) {
  const uint32_t table = blocks[at].table;
  const TableSpec& spec = rows.tables().tables[table];
  uint64_t left = blocks[at].rows;
  if (absl::Status s = writer.Begin(blocks[at]); !s.ok()) return s;
  const auto visit = [&](Position position, const uint8_t*, const uint8_t* row) -> absl::Status {
    if (row == nullptr) return absl::OkStatus();
    if (left == 0) {
      if (at + 1 == blocks.size() || blocks[at + 1].table != table || blocks[at + 1].removed) {
        return absl::DataLossError(
            absl::StrCat(rows.folder(), " holds more rows than its files say"));
      }
      if (absl::Status ended = writer.End(); !ended.ok()) return ended;
      left = blocks[++at].rows;
      if (absl::Status begun = writer.Begin(blocks[at]); !begun.ok()) return begun;
    }
    --left;
    return writer.AddRow(spec.KeyAtPosition(position), row);
  };
  if (absl::Status s = VisitChanges(before, rows, table, visit); !s.ok()) return s;
  ++at;
  return writer.End();
}

absl::Status WriteRemoved(const CheckpointRows& before, const CheckpointRows& rows,
                          const ExportBlock& block, ExportWriter& writer) {
  const TableSpec& spec = rows.tables().tables[block.table];
  if (absl::Status s = writer.Begin(block); !s.ok()) return s;
  absl::Status s = VisitChanges(&before, rows, block.table,
                                [&](Position position, const uint8_t*, const uint8_t* row) {
                                  if (row != nullptr) return absl::OkStatus();
                                  return writer.AddRow(spec.KeyAtPosition(position), nullptr);
                                });
  return s.ok() ? writer.End() : s;
}

// Rows of hashed tables that changed and that are gone, by table.
struct ChangeCounts {
  std::vector<uint64_t> rows, removed;
};

absl::StatusOr<ChangeCounts> CountChanges(const CheckpointRows& before, const CheckpointRows& rows,
                                          const std::string& only) {
  ChangeCounts counts;
  counts.rows.resize(rows.rows().size());
  counts.removed.resize(rows.rows().size());
  for (uint32_t t = 0; t < rows.rows().size(); ++t) {
    const TableSpec& table = rows.tables().tables[t];
    if (table.kind == TableKind::kDense || (!only.empty() && table.name != only)) continue;
    absl::Status s =
        VisitChanges(&before, rows, t, [&](Position, const uint8_t*, const uint8_t* row) {
          ++(row == nullptr ? counts.removed[t] : counts.rows[t]);
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
  }
  return counts;
}

// Nothing of it when `directory` is empty.
absl::StatusOr<std::optional<CheckpointRows>> OpenSince(const std::string& directory,
                                                        const CheckpointRows& rows) {
  if (directory.empty()) return std::optional<CheckpointRows>();
  auto before = CheckpointRows::Open(directory);
  if (!before.ok()) return before.status();
  if (absl::Status s = CheckSameModel(*before, rows); !s.ok()) return s;
  if (before->manifest().step() >= rows.manifest().step()) {
    return absl::FailedPreconditionError(absl::StrCat(
        before->folder(), " is of step ", before->manifest().step(), ", which is not before ",
        rows.manifest().step(), ", that of ", rows.folder()));
  }
  return std::optional<CheckpointRows>(*std::move(before));
}

// Rows that nothing has touched yet are not in the checkpoint: they are what they begin as.
absl::Status WriteTensor(const CheckpointRows& rows, const ExportBlock& block,
                         ExportWriter& writer) {
  const TensorSpec& tensor = rows.tables().tensor(*block.tensor);
  uint64_t next = tensor.first.value;
  const uint64_t last = next + block.rows - 1;
  const auto fill = [&](uint64_t until) {
    for (; next < until; ++next) {
      const std::vector<uint8_t> row = rows.InitialRow(block.table, Key(next));
      if (absl::Status s = writer.AddRow(Key(next), row.data()); !s.ok()) return s;
    }
    return absl::OkStatus();
  };
  if (absl::Status s = writer.Begin(block); !s.ok()) return s;
  absl::Status s = rows.ReadRange(block.table, tensor.first, Position(last),
                                  [&](Position position, const uint8_t* row) {
                                    if (absl::Status f = fill(position.value); !f.ok()) return f;
                                    ++next;
                                    return writer.AddRow(Key(position.value), row);
                                  });
  if (s.ok()) s = fill(last + 1);
  return s.ok() ? writer.End() : s;
}

// A disk that fails is no scheduler that does not answer.
absl::Status OfThisMachine(const absl::Status& status) {
  return absl::IsUnavailable(status) ? absl::InternalError(status.message()) : status;
}

absl::Status WriteArrays(const CheckpointRows* before, const CheckpointRows& rows,
                         const Blocks& blocks, ExportWriter& writer) {
  for (size_t at = 0; at < blocks.size();) {
    const ExportBlock& block = blocks[at];
    absl::Status s;
    if (block.tensor.has_value()) {
      s = WriteTensor(rows, block, writer);
      ++at;
    } else if (block.removed) {
      s = WriteRemoved(*before, rows, block, writer);
      ++at;
    } else {
      s = WriteFeatures(before, rows, blocks, at, writer);
    }
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<ExportPlan> MakePlan(const CheckpointRows* before, const CheckpointRows& rows,
                                    const ExportPlanOptions& options) {
  if (options.format == ExportFormat::kDelta) {
    ExportPlan plan;
    plan.format = options.format;
    plan.files.push_back({.name = DeltaFileName(before, rows), .header = {}, .bytes = 0});
    return plan;
  }
  if (before == nullptr) return PlanExport(rows.tables(), rows.rows(), options);
  auto counts = CountChanges(*before, rows, options.table);
  if (!counts.ok()) return counts.status();
  return PlanExport(rows.tables(), counts->rows, options, counts->removed);
}

absl::StatusOr<ExportSummary> Export(const ExportOptions& options) {
  auto rows = CheckpointRows::Open(options.checkpoint_dir);
  if (!rows.ok()) return rows.status();
  auto since = OpenSince(options.since_dir, *rows);
  if (!since.ok()) return since.status();
  const CheckpointRows* before = since->has_value() ? &**since : nullptr;
  const CheckpointRows* const after = &*rows;
  for (const CheckpointRows* read : {before, after}) {
    if (read == nullptr) continue;
    absl::Status s = CheckOutsideCheckpoint("--output", options.output, read->folder());
    if (!s.ok()) return s;
  }
  auto plan = MakePlan(before, *rows, options.plan);
  if (!plan.ok()) return plan.status();
  ExportFolderOptions folder_options{
      .path = options.output, .overwrite = options.overwrite, .system = options.system};
  for (const ExportFile& file : plan->files) folder_options.files.push_back(file.name);
  folder_options.index =
      plan->format == ExportFormat::kSafetensors ? kSafetensorsIndexName : kNpyIndexName;
  auto folder = ExportFolder::Open(folder_options);
  if (!folder.ok()) return folder.status();
  ExportSummary summary;
  ExportWriter writer(&*plan, folder->get(), *options.system);
  if (plan->format == ExportFormat::kDelta) {
    auto delta = WriteDelta((*folder)->PartialPath(plan->files[0].name), before, *rows,
                            {options.plan.table, options.plan.with_state, options.system});
    if (!delta.ok()) return delta.status();
    plan->files[0].bytes = delta->bytes;
    summary.rows = delta->upserts;
    summary.removed = delta->deletes;
  } else {
    if (absl::Status s = writer.Allocate(); !s.ok()) return s;
    if (absl::Status s = WriteArrays(before, *rows, plan->blocks, writer); !s.ok()) return s;
  }
  const Manifest* since_manifest = before == nullptr ? nullptr : &before->manifest();
  if (absl::Status s = (*folder)->Publish(
          ExportIndexText(*plan, rows->tables(), {rows->folder(), rows->manifest(), since_manifest},
                          writer.checksums()));
      !s.ok()) {
    return s;
  }
  summary.checkpoint = rows->folder();
  summary.step = rows->manifest().step();
  if (before != nullptr) summary.since = before->manifest().step();
  summary.index = absl::StrCat(options.output, "/", folder_options.index);
  summary.arrays = writer.checksums().size();
  summary.files = plan->files.size();
  for (const ExportBlock& block : plan->blocks) {
    if (!block.tensor) (block.removed ? summary.removed : summary.rows) += block.rows;
  }
  for (const ExportFile& file : plan->files) summary.bytes += file.bytes;
  return summary;
}

}  // namespace

absl::StatusOr<ExportSummary> ExportCheckpoint(const ExportOptions& options) {
  auto summary = Export(options);
  if (!summary.ok()) return OfThisMachine(summary.status());
  return summary;
}

absl::StatusOr<std::string> CheckpointOfStep(const std::string& directory, uint64_t step) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  std::error_code error;
  const bool one = std::filesystem::exists(path / kManifestName, error);
  std::filesystem::path parent = path;
  if (one) {
    if (parent.filename().empty()) parent = parent.parent_path();
    parent = parent.parent_path().empty() ? "." : parent.parent_path();
  }
  auto list = ListCheckpoints(parent.string());
  if (!list.ok()) return list.status();
  std::vector<uint64_t> steps;
  for (const CheckpointEntry& entry : list->complete) {
    if (entry.step == step) return entry.folder;
    steps.push_back(entry.step);
  }
  return absl::NotFoundError(absl::StrCat(
      "no complete checkpoint of step ", step, " in ", parent.string(),
      "; there are: ", absl::StrJoin(steps, ", "),
      " (what changed is found by comparing with it: keep it, by spec.checkpoint.keep)"));
}

}  // namespace strata
