// kill -9, SIGSTOP and faults of the network at every role in every phase of bsp.
// Each job has the model of an undisturbed run, to the bit (promise P3), whatever was struck.
#include <catch2/catch.hpp>

#include "tests/faults/matrix/fault_matrix.h"
#include "tests/faults/matrix/kill_matrix.h"

namespace strata::testing {
namespace {

TEST_CASE("bsp: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p3][p6][p8]") {
  FillMatrix(Mode::kBsp);
}

}  // namespace
}  // namespace strata::testing
