// Steps of an export: 1 the checkpoint's tables and row counts (CheckpointRows), 2 the plan
// (PlanExport), 3 the output folder (ExportFolder), 4 files of full size (ExportWriter::Allocate),
// 5 rows, block by block (WriteFeatures, WriteTensor), 6 the index, and all names
// (ExportFolder::Publish).
#include "tools/cluster/export.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/cluster/checkpoint_rows.h"
#include "tools/cluster/export_folder.h"
#include "tools/cluster/export_index.h"
#include "tools/cluster/export_writer.h"

namespace strata {
namespace {

using Blocks = std::vector<ExportBlock>;

// All parts of a hashed table, blocks[at] being the first; moves `at` behind the last.
absl::Status WriteFeatures(const CheckpointRows& rows, const Blocks& blocks, size_t& at,
                           ExportWriter& writer) {
  const uint32_t table = blocks[at].table;
  const TableSpec& spec = rows.tables().tables[table];
  uint64_t left = blocks[at].rows;
  if (absl::Status s = writer.Begin(blocks[at]); !s.ok()) return s;
  absl::Status s = rows.ReadAll(table, [&](Position position, const uint8_t* row) {
    if (left == 0) {
      if (at + 1 == blocks.size() || blocks[at + 1].table != table) {
        return absl::DataLossError(
            absl::StrCat(rows.folder(), " holds more rows than its files say"));
      }
      if (absl::Status ended = writer.End(); !ended.ok()) return ended;
      left = blocks[++at].rows;
      if (absl::Status begun = writer.Begin(blocks[at]); !begun.ok()) return begun;
    }
    --left;
    return writer.AddRow(spec.KeyAtPosition(position), row);
  });
  if (!s.ok()) return s;
  ++at;
  return writer.End();
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

absl::StatusOr<ExportSummary> Export(const ExportOptions& options) {
  auto rows = CheckpointRows::Open(options.checkpoint_dir);
  if (!rows.ok()) return rows.status();
  auto plan = PlanExport(rows->tables(), rows->rows(), options.plan);
  if (!plan.ok()) return plan.status();
  ExportFolderOptions folder_options{.path = options.output, .overwrite = options.overwrite};
  for (const ExportFile& file : plan->files) folder_options.files.push_back(file.name);
  folder_options.index = plan->format == ExportFormat::kNpy ? kNpyIndexName : kSafetensorsIndexName;
  auto folder = ExportFolder::Open(folder_options);
  if (!folder.ok()) return folder.status();
  ExportWriter writer(&*plan, folder->get());
  if (absl::Status s = writer.Allocate(); !s.ok()) return s;
  for (size_t at = 0; at < plan->blocks.size();) {
    const ExportBlock& block = plan->blocks[at];
    absl::Status s;
    if (block.tensor.has_value()) {
      s = WriteTensor(*rows, block, writer);
      ++at;
    } else {
      s = WriteFeatures(*rows, plan->blocks, at, writer);
    }
    if (!s.ok()) return s;
  }
  if (absl::Status s = (*folder)->Publish(ExportIndexText(*plan, rows->tables(), rows->folder(),
                                                          rows->manifest(), writer.checksums()));
      !s.ok()) {
    return s;
  }
  ExportSummary summary;
  summary.checkpoint = rows->folder();
  summary.step = rows->manifest().step();
  summary.index = absl::StrCat(options.output, "/", folder_options.index);
  summary.arrays = writer.checksums().size();
  summary.files = plan->files.size();
  for (const ExportBlock& block : plan->blocks) summary.rows += block.tensor ? 0 : block.rows;
  for (const ExportFile& file : plan->files) summary.bytes += file.bytes;
  return summary;
}

}  // namespace

absl::StatusOr<ExportSummary> ExportCheckpoint(const ExportOptions& options) {
  auto summary = Export(options);
  if (!summary.ok()) return OfThisMachine(summary.status());
  return summary;
}

}  // namespace strata
