// What `strata predict` tells of the lines that it scored.
#ifndef STRATA_TOOLS_CLI_DATA_SCORED_TEXT_H_
#define STRATA_TOOLS_CLI_DATA_SCORED_TEXT_H_

#include <string>

#include "tools/cluster/embedded/predict.h"

namespace strata {

// "scored 200 lines: AUC 0.7712, logloss 0.5102". Says of how many lines that is, where not of all.
std::string ScoredText(const PredictSummary& summary);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_SCORED_TEXT_H_
