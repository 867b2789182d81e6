// Seeds of simulations and random tests.
#ifndef STRATA_TESTS_SEED_H_
#define STRATA_TESTS_SEED_H_

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace strata {

// The seeds that `simulation` runs. In Bazel's tests these are the same in every run: first those
// that failed once (tests/sim/seeds), then `count` from `first` on. With STRATA_SEED=N in the
// environment they are N alone, or with STRATA_SEED_COUNT=M the M from N on: so `tools/test` runs
// fresh seeds, and so one is run again:
//
//   TEST_CASE("rows survive", "[storage][seeds]") {
//     const uint64_t seed = GENERATE(Catch::Generators::from_range(Seeds("rows_survive")));
//
// Cases tagged [seeds] run with fresh seeds; their test has the tag `seeds` of Bazel's. Throws
// std::runtime_error where the environment or the file cannot be read.
std::vector<uint64_t> Seeds(const std::string& simulation, uint64_t first = 1, uint64_t count = 1);

// Whether STRATA_SEED names the seeds: what is only true of many seeds is not expected then, and a
// long case does the first part of what it does in Bazel's tests.
bool SeedsAreGiven();

// The seeds of `simulation` in a file of lines "SIMULATION SEED # WHY".
std::vector<uint64_t> FailedSeeds(std::istream& file, const std::string& simulation);

}  // namespace strata

#endif  // STRATA_TESTS_SEED_H_
