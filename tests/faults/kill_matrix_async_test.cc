// kill -9, SIGSTOP and faults of the network at every role in every phase of async.
// Each window takes effect once and no local step is lost (promise P7), whatever was struck.
#include <catch2/catch.hpp>

#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/kill_matrix.h"

namespace strata::testing {
namespace {

TEST_CASE("async: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8]") {
  FillMatrix(Mode::kAsync);
}

}  // namespace
}  // namespace strata::testing
