// How many bytes of messages a job needs again and again: a part of what `strata estimate` prints.
// Tested by tests/e2e/wire_estimate_test.cc
#ifndef STRATA_TOOLS_CLI_DATA_WIRE_ESTIMATE_H_
#define STRATA_TOOLS_CLI_DATA_WIRE_ESTIMATE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/data_measure.h"

namespace strata {

struct WireEstimate {
  // Bsp: a step of all lanes; the other modes: a batch of one lane.
  bool of_step = false;
  // Of all processes together, with the most keys that the data have in so many lines.
  std::vector<MemoryPart> parts;
};

// `spec` has its defaults resolved; `tables` are its tables.
WireEstimate EstimateWire(const JobSpec& spec, const DataMeasure& data, const ModelTables& tables);

// {"of": "step" or "batch", "bytes": sum, "parts": [{"name", "bytes", "formula"}]}
nlohmann::ordered_json WireJson(const WireEstimate& wire);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_WIRE_ESTIMATE_H_
