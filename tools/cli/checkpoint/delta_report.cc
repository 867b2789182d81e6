#include "tools/cli/checkpoint/delta_report.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/delta/file.h"
#include "storage/io/file_io.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::DeltaBlock;
using storage::DeltaReader;
using storage::RemovedName;

absl::Status VisitBlock(const storage::DeltaHeader& header, const DeltaBlock& block,
                        const DeltaRowVisitor& visit) {
  const storage::DeltaTable& table = *header.Find(block.table);
  const size_t row_bytes = header.row_bytes(table);
  for (size_t i = 0; i < block.keys.size(); ++i) {
    DeltaRow row;
    row.table = block.table;
    row.key = block.keys[i];
    row.removed = block.rows == nullptr;
    if (!row.removed) {
      const auto* floats = reinterpret_cast<const float*>(block.rows + i * row_bytes);
      row.weights = {floats, table.dim};
      if (header.with_state) {
        row.state = {floats + table.dim, table.state_floats};
        std::memcpy(static_cast<void*>(&row.meta.emplace()),
                    floats + table.dim + table.state_floats, sizeof(storage::RowMeta));
      }
    }
    if (absl::Status s = visit(row); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// A delta alone in its file: whole first, then once more for `visit`.
absl::StatusOr<DeltaFileReport> ReadOne(const std::string& path, const DeltaRowVisitor& visit) {
  DeltaFileReport report;
  report.path = path;
  for (const bool deliver : {false, true}) {
    if (deliver && visit == nullptr) break;
    auto reader = DeltaReader::Open(path);
    if (!reader.ok()) return reader.status();
    report.delta = (*reader)->header();
    report.tables = report.delta->tables;
    report.put.assign(report.tables.size(), 0);
    report.removed.assign(report.tables.size(), 0);
    DeltaBlock block;
    for (;;) {
      auto more = (*reader)->Next(block);
      if (!more.ok()) return more.status();
      if (!*more) break;
      const bool put = block.type == storage::DeltaBlockType::kUpserts;
      const auto table = report.delta->Find(block.table) - report.delta->tables.data();
      (put ? report.put : report.removed)[static_cast<size_t>(table)] += block.keys.size();
      absl::Status s = deliver ? VisitBlock(*report.delta, block, visit) : absl::OkStatus();
      if (!s.ok()) return s;
    }
    report.bytes = (*reader)->summary().bytes;
  }
  return report;
}

absl::StatusOr<DeltaFileReport> ReadRemovals(const std::string& path,
                                             const std::optional<RemovedName>& name, uint64_t last,
                                             const DeltaRowVisitor& visit) {
  auto summary = storage::ReadRemovedFile(path, name.value_or(RemovedName{}), last,
                                          [&](const storage::RemovedKeys& removed) -> absl::Status {
                                            if (visit == nullptr) return absl::OkStatus();
                                            DeltaRow row;
                                            row.table = removed.table;
                                            row.removed = true;
                                            row.step = removed.step;
                                            for (const uint64_t key : removed.keys) {
                                              row.key = key;
                                              if (absl::Status s = visit(row); !s.ok()) return s;
                                            }
                                            return absl::OkStatus();
                                          });
  if (!summary.ok()) return summary.status();
  DeltaFileReport report;
  report.path = path;
  report.bytes = summary->file_bytes;
  report.tables = summary->tables;
  report.put.assign(report.tables.size(), 0);
  report.removed = summary->keys;
  report.removals = {name, *std::move(summary)};
  return report;
}

// What a file is says its name, or, where it was renamed, its first header.
absl::StatusOr<DeltaFileReport> ReadFile(const std::string& path, const DeltaRowVisitor& visit) {
  constexpr uint64_t kAll = ~uint64_t{0};
  const auto name = storage::ParseRemovedName(fs::path(path).filename().string());
  if (name.has_value()) return ReadRemovals(path, name, kAll, visit);
  auto reader = DeltaReader::Open(path);
  if (!reader.ok()) return reader.status();
  if ((*reader)->header().removals) return ReadRemovals(path, std::nullopt, kAll, visit);
  return ReadOne(path, visit);
}

absl::StatusOr<std::vector<std::string>> DeltaFilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!absl::StartsWith(name, "delta-") || !absl::EndsWith(name, ".strata")) continue;
    files.push_back(absl::StrCat(folder, "/", name));
  }
  if (error) return ErrnoStatus(error.value(), "list", folder);
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<DeltaFileReport>> ReadFolder(const std::string& folder,
                                                        const DeltaRowVisitor& visit) {
  const auto deltas = DeltaFilesIn(folder);
  if (!deltas.ok()) return deltas.status();
  const auto names = storage::ListRemoved(folder);
  if (!names.ok()) return names.status();
  if (deltas->empty() && names->empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder,
                     ": no deltas (delta-*.strata) and no removed keys (removed-*.strata) "
                     "are in this folder"));
  }
  std::vector<DeltaFileReport> reports;
  const auto add = [&reports](absl::StatusOr<DeltaFileReport> report) {
    if (report.ok()) reports.push_back(*std::move(report));
    return report.status();
  };
  for (const std::string& path : *deltas) {
    if (absl::Status s = add(ReadFile(path, visit)); !s.ok()) return s;
  }
  for (const RemovedName& name : *names) {
    absl::Status s = add(ReadRemovals(absl::StrCat(folder, "/", storage::RemovedFileName(name)),
                                      name, storage::LastThatCounts(name, *names), visit));
    if (!s.ok()) return s;
  }
  return reports;
}

}  // namespace

absl::StatusOr<std::vector<DeltaFileReport>> ReadDeltas(const std::string& path,
                                                        const DeltaRowVisitor& visit) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file or folder"));
  }
  if (error) return ErrnoStatus(error.value(), "look at", path);
  if (fs::is_directory(status)) return ReadFolder(path, visit);
  auto report = ReadFile(path, visit);
  if (!report.ok()) return report.status();
  std::vector<DeltaFileReport> reports;
  reports.push_back(*std::move(report));
  return reports;
}

}  // namespace strata
