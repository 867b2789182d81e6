#include "worker/data/reading/parse_throughput.h"

#include <catch2/catch.hpp>

#include "worker/data/formats/libsvm_parser.h"

namespace strata {

TEST_CASE("throughput counts all lines of the text", "[data][throughput]") {
  const auto parser = MakeLibsvmParser(4);
  const ParseThroughput result = MeasureParse(*parser, "1 2:1\n0 3:1 4:1\n\nx\n1 5:1", 2);
  CHECK(result.bytes == 24);
  CHECK(result.examples == 3);
  CHECK(result.bad_lines == 1);
  CHECK(result.key_sum == 14);
  CHECK(result.seconds > 0);
  CHECK(result.BytesPerSecond() > 0);
  CHECK(MeasureParse(*parser, "", 1).examples == 0);
}

}  // namespace strata
