// kill -9, SIGSTOP and faults of the network at every role in every phase of every mode. In bsp
// each job has the model of an undisturbed run, to the bit (promise P3). In async each window takes
// effect once and no local step is lost (promise P7); in downpour and easgd of local steps no more
// are lost than lanes have between two windows. Each case is a target of its own.
#include "tests/faults/matrix/kill_matrix.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/e2e/cluster/shown_clock.h"
#include "tests/faults/matrix/fault_matrix.h"
#include "tests/skip.h"

namespace strata::testing {
namespace {

TEST_CASE("bsp: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p3][p6][p8][bsp]") {
  FillMatrix(Mode::kBsp);
}

TEST_CASE("async: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][async]") {
  FillMatrix(Mode::kAsync);
}

TEST_CASE("downpour: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][downpour]") {
  FillMatrix(Mode::kDownpour);
}

TEST_CASE("easgd: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][easgd]") {
  FillMatrix(Mode::kEasgd);
}

TEST_CASE("bsp with copies: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p3][p6][p8][bsp_copies]") {
  FillCopiesMatrix(Mode::kBsp);
}

TEST_CASE("async with copies: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][async_copies]") {
  FillCopiesMatrix(Mode::kAsync);
}

TEST_CASE("downpour with copies: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][downpour_copies]") {
  FillCopiesMatrix(Mode::kDownpour);
}

TEST_CASE("easgd with copies: nothing that is struck in any phase costs a job anything",
          "[faults][p1][p2][p7][p6][p8][easgd_copies]") {
  FillCopiesMatrix(Mode::kEasgd);
}

TEST_CASE("each clock is set forth and back in each mode: no job is any different",
          "[faults][clock][clocks]") {
  if (!std::filesystem::exists(kFakeTimeLibrary)) STRATA_SKIP("libfaketime is not installed");
  for (const Mode mode : kModes) FillClockMatrix(mode);
}

}  // namespace
}  // namespace strata::testing
