#include "tests/seed.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace strata {
namespace {

// Below the checkout's root and the root of a test's files alike.
constexpr char kFailedSeeds[] = "tests/sim/seeds";

uint64_t Number(const std::string& text, const std::string& what) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) {
    throw std::runtime_error(what + ": " + text + " is no number of 64 bits");
  }
  return value;
}

std::string Given(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void Append(std::vector<uint64_t>& seeds, uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
}

}  // namespace

bool SeedsAreGiven() { return !Given("STRATA_SEED").empty(); }

std::vector<uint64_t> FailedSeeds(std::istream& file, const std::string& simulation) {
  std::vector<uint64_t> seeds;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, seed, more;
    if (!(words >> name)) continue;
    if (!(words >> seed) || words >> more) {
      throw std::runtime_error(std::string(kFailedSeeds) + ": no line SIMULATION SEED: " + line);
    }
    const uint64_t number = Number(seed, kFailedSeeds);
    if (name == simulation) seeds.push_back(number);
  }
  return seeds;
}

std::vector<uint64_t> Seeds(const std::string& simulation, uint64_t first, uint64_t count) {
  std::vector<uint64_t> seeds;
  if (SeedsAreGiven()) {
    const std::string many = Given("STRATA_SEED_COUNT");
    Append(seeds, Number(Given("STRATA_SEED"), "STRATA_SEED"),
           many.empty() ? 1 : Number(many, "STRATA_SEED_COUNT"));
  } else {
    std::ifstream file(kFailedSeeds);
    if (!file) {
      throw std::runtime_error(std::string(kFailedSeeds) +
                               " cannot be read: run this in the checkout's root");
    }
    seeds = FailedSeeds(file, simulation);
    Append(seeds, first, count);
  }
  if (seeds.empty()) throw std::runtime_error(simulation + ": no seed to run");
  std::fprintf(stderr, "%s: %zu seeds, the last is %llu\n", simulation.c_str(), seeds.size(),
               static_cast<unsigned long long>(seeds.back()));
  return seeds;
}

}  // namespace strata
