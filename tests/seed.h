// Seeds of random tests.
#ifndef STRATA_TESTS_SEED_H_
#define STRATA_TESTS_SEED_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

namespace strata {

// Drawn anew in every run and told on stderr beside `what`. To repeat a run that failed, give its
// seed back: `bazel test --test_env=STRATA_SEED=N TARGET`; then every draw is N.
inline uint64_t DrawSeed(const std::string& what) {
  const char* given = std::getenv("STRATA_SEED");
  const bool repeat = given != nullptr && *given != '\0';
  const uint64_t seed = repeat ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::fprintf(stderr, "%s: seed %llu\n", what.c_str(), static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace strata

#endif  // STRATA_TESTS_SEED_H_
