// Seeded mutations of good lines and good archives, under the oracle of the fuzz targets.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "proto/core/position.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/formats/input_oracle.h"

namespace strata {
namespace {

class Mutator {
 public:
  uint64_t Draw(uint64_t below) { return Mix64(++random_) % below; }

  void Mutate(const std::string& alphabet, std::string* text) {
    for (uint64_t n = Draw(4); n-- > 0 && !text->empty();) {
      const size_t at = Draw(text->size());
      const char c =
          alphabet.empty() ? static_cast<char>(Draw(256)) : alphabet[Draw(alphabet.size())];
      switch (Draw(4)) {
        case 0:
          (*text)[at] = c;
          break;
        case 1:
          text->insert(at, 1, c);
          break;
        case 2:
          text->erase(at, 1 + Draw(3));
          break;
        default:
          text->insert(at, text->substr(Draw(text->size()), Draw(20)));
      }
    }
  }

 private:
  uint64_t random_ = 0;
};

TEST_CASE("lines of every format, mutated", "[data][fuzz]") {
  const std::string alphabet("\t ,|:\"#-+.0123456789eExnaif\r\0\xff\x80", 32);
  Mutator mutator;
  for (int f = 0; f < testing::kLineFormats; ++f) {
    const auto format = testing::LineFormat(f);
    int examples = 0, bad = 0;
    REQUIRE(testing::JudgeLine(format, testing::GoodLine(format)).example);
    for (int round = 0; round < 15'000; ++round) {
      std::string line = testing::GoodLine(format);
      mutator.Mutate(alphabet, &line);
      const testing::LineVerdict verdict = testing::JudgeLine(format, line);
      CAPTURE(f, line, verdict.complaint);
      REQUIRE(verdict.complaint.empty());
      examples += verdict.example;
      bad += verdict.bad;
    }
    CAPTURE(f, examples, bad);
    CHECK(examples > 3000);
    CHECK(bad > 1000);
  }
}

TEST_CASE("archives, mutated", "[data][fuzz]") {
  std::string text;
  for (uint64_t i = 0; i < 200; ++i) text += std::to_string(Mix64(i) % 100) + ":1\n";
  Mutator mutator;
  for (const std::string& good : {Gzip(text) + Gzip("more"), Zstd(text) + Zstd("more")}) {
    for (int round = 0; round < 3000; ++round) {
      std::string file = good;
      mutator.Mutate("", &file);
      const std::string complaint = testing::JudgeCompressed(file);
      CAPTURE(round, complaint);
      REQUIRE(complaint.empty());
    }
  }
}

TEST_CASE("a zstd frame that comes whole is read as one that comes in pieces", "[input]") {
  // It declares 256 bytes, and its only block is empty.
  const std::string frame("\x28\xb5\x2f\xfd\x40\0\0\0\x01\0\0", 11);
  CHECK(testing::JudgeCompressed(frame).empty());
}

}  // namespace
}  // namespace strata
