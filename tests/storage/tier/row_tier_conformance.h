// What every RowTier must do, against a model.
#ifndef STRATA_TESTS_STORAGE_TIER_ROW_TIER_CONFORMANCE_H_
#define STRATA_TESTS_STORAGE_TIER_ROW_TIER_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/tier/row_tier.h"

namespace strata::storage {

inline constexpr uint32_t kConformancePartitions = 16;

// Opens the tier under test, of kConformancePartitions, with little memory.
using OpenTierFunction =
    std::function<absl::StatusOr<std::unique_ptr<RowTier>>(const std::string& directory, OpenMode)>;

// Each is the body of a test case.
// Rows handled: so many, four times as many of a long run.
void TierFollowsAModel(const OpenTierFunction& open, size_t operations);
void TierHoldsExtremeRowsAndPositions(const OpenTierFunction& open);
void TierTakesBatchesOfEverySize(const OpenTierFunction& open);
// Shards that recover side by side drop what they find damaged.
void TierDropsPartitionsOfManyAtOnce(const OpenTierFunction& open);
void TierSurvivesAFullDisk(const OpenTierFunction& open);
void TierSurvivesWantOfHandles(const OpenTierFunction& open);
// A bit that was flipped, and what the tier said then.
struct FoundDamage {
  std::string path;     // of the file
  uint64_t offset = 0;  // of the byte in it
  std::string message;
};
// Flips bits of files with names that begin with `prefix` (or, where it begins with a dot, end with
// it): every row is read right or the tier's error, at open or at the read, is DATA_LOSS, of which
// `check` looks at the message.
void TierFindsDamage(const OpenTierFunction& open, const std::string& prefix,
                     const std::function<void(const FoundDamage&)>& check);
// "PATH, offset N: ..." of our own readers, or "PATH offset N size ..." of RocksDB's: N. Nothing:
// no offset of that file is told.
std::optional<uint64_t> OffsetTold(const FoundDamage& found);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_TIER_ROW_TIER_CONFORMANCE_H_
