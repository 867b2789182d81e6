// kill -9, SIGSTOP and faults of the network at every role in every phase of downpour.
// Each window takes effect once; of local steps no more are lost than lanes have between two
// windows (promise P7), whatever was struck.
#include <catch2/catch.hpp>

#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/kill_matrix.h"

namespace strata::testing {
namespace {

TEST_CASE("downpour: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8]") {
  FillMatrix(Mode::kDownpour);
}

}  // namespace
}  // namespace strata::testing
