// How often the rows of a checkpoint were updated: what tells that each window was applied once.
#ifndef STRATA_TESTS_E2E_CLUSTER_ROW_UPDATES_H_
#define STRATA_TESTS_E2E_CLUSTER_ROW_UPDATES_H_

#include <cstdint>
#include <map>
#include <string>

#include "proto/core/ids.h"

namespace strata::testing {

// RowMeta.updates of each row of the table, by position, over all files of the checkpoint.
std::map<Position, uint32_t> RowUpdates(const std::string& folder, TableId table);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_ROW_UPDATES_H_
