// Evaluations as JSON shows them: what is not defined is null.
// Tested by tests/tools/cli/base/job_text_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_EVALUATION_JSON_H_
#define STRATA_TOOLS_CLI_BASE_EVALUATION_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "proto/strata/job.pb.h"

namespace strata {

nlohmann::ordered_json OrNull(const std::optional<double>& value);

// Of each label; what was not asked for is null, too.
nlohmann::ordered_json TasksAsJson(const EvaluationResult& result);

// The first label's, and `tasks` where the result tells of each.
nlohmann::ordered_json EvaluationAsJson(const EvaluationResult& result);

// Lines whose first label is 1; null where it is not binary.
nlohmann::ordered_json PositivesOrNull(const EvaluationResult& result);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_EVALUATION_JSON_H_
