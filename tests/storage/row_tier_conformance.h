// What every RowTier must do, against a model.
#ifndef STRATA_TESTS_STORAGE_ROW_TIER_CONFORMANCE_H_
#define STRATA_TESTS_STORAGE_ROW_TIER_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/row_tier.h"

namespace strata::storage {

inline constexpr uint32_t kConformancePartitions = 16;

// Opens the tier under test, of kConformancePartitions, with little memory.
using OpenTierFunction =
    std::function<absl::StatusOr<std::unique_ptr<RowTier>>(const std::string& directory, OpenMode)>;

// Each is the body of a test case.
void TierFollowsAModel(const OpenTierFunction& open);
void TierHoldsExtremeRowsAndPositions(const OpenTierFunction& open);
void TierTakesBatchesOfEverySize(const OpenTierFunction& open);
// Shards that recover side by side drop what they find damaged.
void TierDropsPartitionsOfManyAtOnce(const OpenTierFunction& open);
void TierSurvivesAFullDisk(const OpenTierFunction& open);
void TierSurvivesWantOfHandles(const OpenTierFunction& open);
// Flips bits of files with names that begin with `prefix`: every row is read right or not at all.
void TierFindsDamage(const OpenTierFunction& open, const std::string& prefix);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_ROW_TIER_CONFORMANCE_H_
