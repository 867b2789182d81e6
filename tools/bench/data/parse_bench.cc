#include "tools/bench/data/parse_bench.h"

#include <chrono>
#include <cstring>
#include <string>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/generate/criteo_generator.h"
#include "worker/data/formats/parser_factory.h"
#include "worker/data/reading/parse_throughput.h"

namespace strata::bench {
namespace {

constexpr uint64_t kRows = 200000;  // about 45 MB: far beyond the core's own caches
constexpr uint32_t kBatch = 4096;

// Bytes per second of stepping from newline to newline.
double ScanRate(const std::string& text, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  uint64_t bytes = 0, lines = 0;
  double elapsed = 0;
  while (elapsed < seconds) {
    const char* at = text.data();
    const char* end = at + text.size();
    while (const void* newline = std::memchr(at, '\n', static_cast<size_t>(end - at))) {
      at = static_cast<const char*>(newline) + 1;
      ++lines;
    }
    bytes += text.size();
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  volatile uint64_t keep = lines;
  (void)keep;
  return static_cast<double>(bytes) / elapsed;
}

absl::Status RunParse(const BenchOptions& o, const Report& report) {
  CriteoGeneratorOptions generate;
  generate.vocabulary = 1'000'000;
  auto generator = CriteoGenerator::Make(generate);
  if (!generator.ok()) return generator.status();
  std::string text;
  for (uint64_t r = 0; r < kRows; ++r) (*generator)->AppendRow(r, &text);
  for (const char* features : {"dense", "bucket"}) {
    JobSpec spec;
    DataSpec& data = *spec.mutable_data();
    data.set_format("criteo");
    data.set_integer_features(features);
    DataShape shape;
    shape.set_fields(HasBuckets(data) ? 39 : 26);
    shape.set_numeric(HasBuckets(data) ? 0 : 13);
    auto parser = MakeLineParser(spec, shape, "");
    if (!parser.ok()) return parser.status();
    std::vector<double> ours, limits;
    for (int round = 0; round < o.rounds; ++round) {
      double seconds = 0;
      uint64_t bytes = 0;
      while (seconds < o.seconds / 2) {
        const ParseThroughput t = MeasureParse(**parser, text, kBatch);
        if (t.bad_lines > 0) return absl::InternalError("the generated text has bad lines");
        seconds += t.seconds;
        bytes += t.bytes;
      }
      ours.push_back(static_cast<double>(bytes) / seconds / 1e6);
      limits.push_back(ScanRate(text, o.seconds / 4) / 1e6);
    }
    Figure f;
    f.bench = "parse_criteo";
    f.name = std::string("parse + hash, integers ") + features;
    f.value = Median(ours);
    f.unit = "MB/s";
    f.limit = Median(limits);
    f.limit_name = "newline scan";
    report(f);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedBenchmark> ParseBenchmarks() {
  return {{"parse_criteo", "Criteo text to hashed batches, one core", RunParse}};
}

}  // namespace strata::bench
