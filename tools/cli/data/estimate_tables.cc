#include "tools/cli/data/estimate_tables.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/core/table_spec.h"
#include "proto/job/memory_need.h"
#include "server/dram_estimate.h"

namespace strata {
namespace {

// Which shares fit, and what they are good for.
std::string FittingText(const std::vector<TableEstimate>& tables) {
  uint64_t now = 0, then = 0;
  std::string shares;
  for (const TableEstimate& t : tables) {
    now += t.in_dram;
    then += t.fitting_in_dram;
    absl::StrAppend(&shares, shares.empty() ? "" : ", ", t.name, " ", t.fitting);
  }
  return absl::StrCat("Some need less than their parts, and others more. spec.tables[].dramShare ",
                      "that fit, and keep ", BinarySize(then), " of rows in memory instead of ",
                      BinarySize(now), ": ", shares, ".\n");
}

}  // namespace

std::vector<TableEstimate> EstimateTables(const server::ServerLoad& load) {
  std::vector<TableEstimate> tables;
  if (load.dram_bytes == 0) return tables;
  const std::vector<server::TableInDram> now = server::TablesInDram(load);
  const std::vector<uint32_t> shares = server::FittingShares(load);
  server::ServerLoad fitting = load;
  for (size_t t = 0; t < shares.size(); ++t) {
    if (shares[t] > 0) fitting.tables[t].dram_share = shares[t];
  }
  const std::vector<server::TableInDram> then = server::TablesInDram(fitting);
  for (size_t t = 0; t < now.size(); ++t) {
    const TableSpec& table = load.tables[t];
    if (table.kind == TableKind::kDense) continue;
    tables.push_back({.name = table.name,
                      .share = table.dram_share,
                      .part = now[t].part,
                      .needed = now[t].needed,
                      .fitting = shares.empty() ? 0 : shares[t],
                      .in_dram = now[t].in_dram(),
                      .fitting_in_dram = then[t].in_dram()});
  }
  if (tables.size() == 1) tables.clear();
  return tables;
}

std::string TablesText(const std::vector<TableEstimate>& tables) {
  if (tables.empty()) return "";
  std::string text = "\nOf spec.storage.dramBytesPerServer tables have on each server:\n";
  absl::StrAppendFormat(&text, "%-47s%12s%16s  %s\n", "TABLE", "PART", "ALL ROWS NEED",
                        "DRAMSHARE");
  for (const TableEstimate& t : tables) {
    absl::StrAppendFormat(&text, "%-47s%12s%16s  %d\n", t.name, BinarySize(t.part),
                          BinarySize(t.needed), t.share);
  }
  if (tables[0].fitting > 0) absl::StrAppend(&text, FittingText(tables));
  return text;
}

nlohmann::ordered_json TablesJson(const std::vector<TableEstimate>& tables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TableEstimate& t : tables) {
    json.push_back({{"name", t.name},
                    {"dramShare", t.share},
                    {"dramBytes", t.part},
                    {"neededBytes", t.needed}});
    json.back()["fittingDramShare"] =
        t.fitting > 0 ? nlohmann::ordered_json(t.fitting) : nlohmann::ordered_json();
  }
  return json;
}

}  // namespace strata
