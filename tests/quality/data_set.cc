#include "tests/quality/data_set.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"

namespace strata::testing {
namespace {

constexpr double kLooser = 0.004;
constexpr uint64_t kGeneratedLines = 40000;

uint64_t CountLines(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  uint64_t lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

}  // namespace

std::optional<DataSet> FrappeData() {
  if (!DataFolder()) return std::nullopt;
  const std::string folder = *DataFolder() + "/frappe";
  std::fprintf(stderr, "data: %s\n", folder.c_str());
  const std::string train = folder + "/train.libfm";
  return DataSet{train, folder + "/test.libfm", CountLines(train)};
}

DataSet GeneratedData(const std::string& folder, int ids) {
  std::fprintf(stderr, "data: generated\n");
  const DataSet data = {folder + "/train.libfm", folder + "/eval.libfm", kGeneratedLines};
  WriteLibfm(data.train, 1, kGeneratedLines, 10, ids);
  WriteLibfm(data.eval, 2, kGeneratedLines / 4, 10, ids);
  return data;
}

bool GeneratedDataWanted() { return LongRun() || !FrappeData(); }

std::vector<Bar> FrappeBars() {
  return {{"lr", 0.1f, 10, 0.927}, {"fm", 0.05f, 20, 0.942}, {"deepfm", 0.05f, 5, 0.946}};
}

std::vector<Bar> GeneratedBars() {
  return {{"lr", 0.1f, 3, 0.796}, {"fm", 0.05f, 5, 0.952}, {"deepfm", 0.05f, 3, 0.949}};
}

double Looser() { return LongRun() ? 0 : kLooser; }

double MeanOverSeeds(const std::function<double(uint64_t seed)>& measure) {
  const uint64_t seeds = LongRun() ? 3 : 1;
  double sum = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) sum += measure(seed);
  return sum / static_cast<double>(seeds);
}

}  // namespace strata::testing
