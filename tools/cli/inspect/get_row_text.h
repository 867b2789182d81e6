// How one row is shown.
// Tested by tests/tools/cli/inspect/get_row_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_GET_ROW_TEXT_H_
#define STRATA_TOOLS_CLI_INSPECT_GET_ROW_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "tools/cli/inspect/get_row_key.h"
#include "tools/cluster/checkpoint/row_life.h"

namespace strata {

struct NamedFloats {
  std::string name;
  std::vector<float> values;
};

struct RowSegment {
  NamedFloats weights;
  std::vector<NamedFloats> state;  // of a checkpoint
};

struct RowReport {
  std::string table;
  Key key;
  Position position;
  uint32_t partition = 0;
  std::optional<CategoryKey> category;  // what the key was made of
  std::optional<TensorRow> tensor;      // dense table
  std::vector<RowSegment> segments;
  // From a checkpoint: which, and whether the row exists; else the numbers are those it would begin
  // with.
  std::string checkpoint;
  uint64_t step = 0;
  bool exists = false;
  int64_t last_step = 0;  // below 0: so many steps before the job
  uint32_t updates = 0;
  std::optional<RowLife> life;  // of a table with spec.lifeCycle
  // From a server, where `checkpoint` is empty.
  std::string server;
  uint32_t shard = 0;
  uint64_t clock = 0;
  bool initial = false;  // the weights are those of a key without a row
};

// Several lines with their ends. Floats with nine digits, which tell every one apart.
std::string RowText(const RowReport& row);
// One line. Key and position are text: many readers of JSON round large numbers.
std::string RowJson(const RowReport& row);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_GET_ROW_TEXT_H_
