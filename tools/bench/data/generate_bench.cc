#include "tools/bench/data/generate_bench.h"

#include <chrono>
#include <fstream>
#include <string>

#include "tools/generate/criteo_generator.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 1'000'000;  // about 230 MB

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds that a file of so many bytes takes, written in pieces of 1 MiB.
double WriteSeconds(const std::string& path, uint64_t bytes) {
  const std::string piece(size_t{1} << 20, 'x');
  const auto start = std::chrono::steady_clock::now();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  }
  out.close();
  return SecondsSince(start);
}

absl::Status RunGenerate(const BenchOptions& o, const Report& report) {
  CriteoGeneratorOptions options;
  options.rows = kRows;
  std::vector<double> ours, limits;
  for (int round = 0; round < o.rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto made = GenerateCriteo(options, o.directory + "/generated.tsv");
    if (!made.ok()) return made.status();
    ours.push_back(static_cast<double>(kRows) / SecondsSince(start) / 1e3);
    limits.push_back(static_cast<double>(kRows) /
                     WriteSeconds(o.directory + "/written.tsv", made->bytes) / 1e3);
  }
  Figure f;
  f.bench = "generate_criteo";
  f.name = "rows to a file, vocabulary 100,000";
  f.value = Median(ours);
  f.unit = "krows/s";
  f.limit = Median(limits);
  f.limit_name = "the same bytes written";
  report(f);
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> GenerateBenchmarks() {
  return {{"generate_criteo", "planted Criteo rows to a file on one core", RunGenerate}};
}

}  // namespace strata::bench
