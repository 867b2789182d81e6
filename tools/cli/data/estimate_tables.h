// What each hashed table of a job has of spec.storage.dramBytesPerServer, beside what its rows
// need: a part of what `strata estimate` prints.
#ifndef STRATA_TOOLS_CLI_DATA_ESTIMATE_TABLES_H_
#define STRATA_TOOLS_CLI_DATA_ESTIMATE_TABLES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/server_load.h"

namespace strata {

// Of one server; bytes.
struct TableEstimate {
  std::string name;
  uint32_t share = 1;    // spec.tables[].dramShare
  uint64_t part = 0;     // what it may have
  uint64_t needed = 0;   // by all its rows
  uint32_t fitting = 0;  // a share by which more of all rows lie in DRAM; 0: none is much better
  // Of its rows, with its share, and with those that fit.
  uint64_t in_dram = 0;
  uint64_t fitting_in_dram = 0;
};

// In the order of spec.tables. Empty without a limit, and for one table, which has all of it.
std::vector<TableEstimate> EstimateTables(const server::ServerLoad& load);

// A line for each, and one that says which dramShare fit, where some do. "" for none.
std::string TablesText(const std::vector<TableEstimate>& tables);
nlohmann::ordered_json TablesJson(const std::vector<TableEstimate>& tables);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_ESTIMATE_TABLES_H_
