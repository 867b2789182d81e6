// Every SSD tier that can lie below a tiered table, as servers put it together and otherwise.
#ifndef STRATA_TESTS_STORAGE_TIERED_TIER_COMPOSITIONS_H_
#define STRATA_TESTS_STORAGE_TIERED_TIER_COMPOSITIONS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

struct TierComposition {
  std::string name;
  // Of 256 partitions, with so little memory that its files are written and merged all the time.
  std::function<absl::StatusOr<std::unique_ptr<RowTier>>(const std::string& directory, OpenMode)>
      open;
  bool watched = false;  // a server has a WatchedTier over it
};

// Servers' default comes first: a watched row file.
std::vector<TierComposition> TierCompositions();

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_TIERED_TIER_COMPOSITIONS_H_
