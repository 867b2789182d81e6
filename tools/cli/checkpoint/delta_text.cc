#include "tools/cli/checkpoint/delta_text.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/core/table_spec.h"
#include "storage/delta/format.h"
#include "storage/delta/removed_stream.h"
#include "storage/row/layout.h"
#include "tools/cli/base/job_text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;
using storage::DeltaHeader;
using storage::DeltaPoint;
using storage::DeltaTable;
using storage::RemovedSummary;

const char* KindName(const DeltaTable& table) {
  return table.kind == TableKind::kDense ? "dense" : "hashed";
}

uint64_t TornBytes(const RemovedSummary& summary) {
  return summary.file_bytes - summary.whole_bytes;
}

std::string HeaderText(const DeltaHeader& delta) {
  std::string text;
  if (delta.whole) {
    absl::StrAppend(&text, "  a whole model, for an empty copy\n");
  } else {
    absl::StrAppend(&text, "  from step ", WithCommas(delta.from.step), ", rows ",
                    delta.from.hash.Hex(), "\n");
  }
  absl::StrAppend(
      &text, "  to step ", WithCommas(delta.to.step), ", rows ", delta.to.hash.Hex(), "\n  ",
      delta.all_tables ? "all tables of the model; " : "not all tables; ",
      delta.with_state ? "rows are whole: weights, state, metadata\n" : "rows are weights alone\n");
  return text;
}

std::string RemovalsText(const DeltaFileReport::Removals& removals) {
  const RemovedSummary& s = removals.summary;
  std::string text = "  keys that life-cycle rules removed";
  if (removals.name) {
    absl::StrAppend(&text, ": generation ", removals.name->generation.value, " from step ",
                    WithCommas(removals.name->from.value), ", shard ", removals.name->shard.value);
  }
  absl::StrAppend(&text, "\n  ", WithCommas(s.commits), s.commits == 1 ? " commit" : " commits");
  if (s.commits > 0) {
    absl::StrAppend(&text, ", steps ", WithCommas(s.first_step), " to ", WithCommas(s.last_step));
  }
  text += '\n';
  if (s.undone_commits > 0) {
    absl::StrAppend(&text, "  not counted: ", WithCommas(s.undone_commits),
                    " that a roll-back undid\n");
  }
  if (TornBytes(s) > 0) {
    absl::StrAppend(&text, "  not counted: the last ", WithCommas(TornBytes(s)),
                    " bytes, of a commit in progress or one that a crash undid\n");
  }
  return text;
}

std::string TablesText(const DeltaFileReport& report) {
  std::string text;
  for (size_t t = 0; t < report.tables.size(); ++t) {
    const DeltaTable& table = report.tables[t];
    absl::StrAppend(&text, "  table ", table.id.value, ", ", KindName(table), ", rows of ",
                    table.dim, " weights and ", table.state_floats, " floats of state: ");
    if (report.delta) absl::StrAppend(&text, WithCommas(report.put[t]), " to put, ");
    absl::StrAppend(&text, WithCommas(report.removed[t]),
                    report.delta ? " to remove\n" : " removed\n");
  }
  return text;
}

Json PointJson(const DeltaPoint& point) {
  return Json{{"step", point.step}, {"rowsHash", point.hash.Hex()}};
}

Json FileJson(const DeltaFileReport& report) {
  Json json{{"file", report.path}, {"kind", report.delta ? "delta" : "removals"}};
  if (report.delta) {
    json["from"] = PointJson(report.delta->from);
    json["to"] = PointJson(report.delta->to);
    json["whole"] = report.delta->whole;
    json["allTables"] = report.delta->all_tables;
    json["withState"] = report.delta->with_state;
  }
  if (report.removals) {
    const RemovedSummary& s = report.removals->summary;
    if (report.removals->name) {
      json["generation"] = report.removals->name->generation.value;
      json["from"] = report.removals->name->from.value;
      json["shard"] = report.removals->name->shard.value;
    }
    json["commits"] = s.commits;
    json["firstStep"] = s.first_step;
    json["lastStep"] = s.last_step;
    json["undoneCommits"] = s.undone_commits;
    json["tornBytes"] = TornBytes(s);
  }
  json["tables"] = Json::array();
  for (size_t t = 0; t < report.tables.size(); ++t) {
    const DeltaTable& table = report.tables[t];
    json["tables"].push_back(Json{{"id", table.id.value},
                                  {"kind", KindName(table)},
                                  {"dim", table.dim},
                                  {"stateFloats", table.state_floats},
                                  {"put", report.put[t]},
                                  {"removed", report.removed[t]}});
  }
  json["bytes"] = report.bytes;
  return json;
}

// Nine digits tell every float apart.
void AppendFloats(std::string& text, std::span<const float> values, const char* separator) {
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%.9g", i == 0 ? "" : separator, values[i]);
  }
}

}  // namespace

std::string DeltaText(const std::vector<DeltaFileReport>& reports) {
  std::string text;
  for (const DeltaFileReport& report : reports) {
    absl::StrAppend(&text, report.path, "\n", report.delta ? HeaderText(*report.delta) : "",
                    report.removals ? RemovalsText(*report.removals) : "", TablesText(report), "  ",
                    WithCommas(report.bytes), " bytes; every checksum is right\n");
  }
  return text;
}

std::string DeltaJson(const std::vector<DeltaFileReport>& reports) {
  Json json{{"files", Json::array()}};
  for (const DeltaFileReport& report : reports) json["files"].push_back(FileJson(report));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string DeltaRowText(const DeltaRow& row) {
  std::string text =
      absl::StrCat(row.removed ? "remove\t" : "put\t", row.table.value, "\t", row.key);
  if (!row.removed) {
    text += '\t';
    AppendFloats(text, row.weights, " ");
  }
  if (row.meta) {
    text += '\t';
    AppendFloats(text, row.state, " ");
    absl::StrAppend(&text, "\t", storage::StepOf(row.meta->last_step), "\t", row.meta->updates);
  }
  if (row.step) absl::StrAppend(&text, "\t", *row.step);
  return text + "\n";
}

std::string DeltaRowJson(const DeltaRow& row) {
  std::string text = absl::StrCat("{\"table\":", row.table.value, ",\"key\":\"", row.key,
                                  "\",\"removed\":", row.removed ? "true" : "false");
  if (!row.removed) {
    text += ",\"weights\":[";
    AppendFloats(text, row.weights, ",");
    text += ']';
  }
  if (row.meta) {
    text += ",\"state\":[";
    AppendFloats(text, row.state, ",");
    absl::StrAppend(&text, "],\"lastStep\":", storage::StepOf(row.meta->last_step),
                    ",\"updates\":", row.meta->updates);
  }
  if (row.step) absl::StrAppend(&text, ",\"step\":", *row.step);
  return text + "}\n";
}

}  // namespace strata
