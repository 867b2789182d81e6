#include "tools/cli/data/scored_text.h"

#include <catch2/catch.hpp>
#include <string>

#include "tools/cluster/embedded/predict.h"

namespace strata {
namespace {

TEST_CASE("what is told of scored lines says of which it is", "[cli][predict]") {
  PredictSummary s;
  s.lines = s.measured = 5'000'000;
  CHECK(ScoredText(s) == "scored 5,000,000 lines; none has a label");
  s.labelled = s.measured_labelled = s.lines;
  s.bad_lines = 3;
  CHECK(ScoredText(s).find("scored 5,000,000 lines, left out 3 bad ones: ") == 0);
  s.bad_lines = 0;
  s.labelled = s.measured_labelled = 7;
  CHECK(ScoredText(s).find("scored 5,000,000 lines, 7 with a label: ") == 0);
  // Only the first lines are measured; labels may come behind them.
  s.measured = 4'000'000;
  CHECK(ScoredText(s).find("scored 5,000,000 lines; of the first 4,000,000, 7 with a label: ") ==
        0);
  s.measured_labelled = 0;
  CHECK(
      ScoredText(s) ==
      "scored 5,000,000 lines; none of the first 4,000,000 has a label, and 7 of the others; only "
      "the first 4,000,000 are measured");
}

}  // namespace
}  // namespace strata
