#include "worker/data/files/decompressor.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/core/position.h"
#include "tests/worker/data/files/compressed.h"

namespace strata {
namespace {

// Gives `file` in pieces of `piece` bytes; the text goes to `text`.
absl::Status Read(const std::string& file, size_t piece, std::string* text) {
  text->clear();
  const auto decompressor = Decompressor::Make(CompressionOf(file), "f");
  for (size_t at = 0; at < file.size(); at += piece) {
    const absl::Status s = decompressor->Push(absl::string_view(file).substr(at, piece),
                                              [text](absl::string_view part) {
                                                text->append(part.data(), part.size());
                                                return absl::OkStatus();
                                              });
    if (!s.ok()) return s;
  }
  return decompressor->Finish();
}

// Lines of numbers: some redundancy, as data have.
std::string Text(uint64_t seed, size_t bytes) {
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    text += std::to_string(Mix64(seed + i) % 1000) + (i % 8 == 0 ? "\n" : "\t");
  }
  text.resize(bytes);
  return text;
}

}  // namespace

TEST_CASE("what was compressed comes back, in pieces of any size", "[data][decompressor]") {
  const bool zstd = GENERATE(false, true);
  const auto compress = [zstd](const std::string& s) { return zstd ? Zstd(s) : Gzip(s); };
  std::string got;
  for (const size_t bytes : {0, 1, 100, 100'000, 3'000'000}) {
    const std::string text = Text(bytes, bytes);
    const std::string file = compress(text);
    for (const size_t piece : {1, 7, 4096, 1 << 20, 1 << 30}) {
      if (piece == 1 && bytes > 100'000) continue;
      REQUIRE(Read(file, piece, &got).ok());
      REQUIRE(got == text);
    }
  }
  // Highly compressible: each byte of the file gives many pieces of text.
  const std::string same(5'000'000, 'x');
  REQUIRE(Read(compress(same), 3, &got).ok());
  REQUIRE(got == same);
}

TEST_CASE("members and frames that follow one another are joined", "[data][decompressor]") {
  std::string got;
  const std::string a = Text(1, 70'000), b = Text(2, 300);
  for (const size_t piece : {1, 1000, 1 << 20}) {
    REQUIRE(Read(Gzip(a) + Gzip("") + Gzip(b), piece, &got).ok());
    REQUIRE(got == a + b);
    const std::string skippable("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
    REQUIRE(Read(skippable + Zstd(a) + Zstd("") + skippable + Zstd(b), piece, &got).ok());
    REQUIRE(got == a + b);
  }
}

TEST_CASE("a file cut off anywhere is told", "[data][decompressor]") {
  const std::string text = Text(3, 2000);
  for (const std::string& file : {Gzip(text), Zstd(text)}) {
    for (size_t cut = 4; cut < file.size(); ++cut) {
      std::string got;
      const absl::Status s = Read(file.substr(0, cut), 512, &got);
      INFO(cut << " " << s.ToString());
      REQUIRE(s.code() == absl::StatusCode::kDataLoss);
      REQUIRE(std::string(s.message())
                  .find("f is cut off: it ends at byte " + std::to_string(cut) + " within a ") ==
              0);
    }
  }
}

TEST_CASE("damage is told or does no harm", "[data][decompressor]") {
  const std::string text = Text(4, 3000);
  for (const std::string& file : {Gzip(text), Zstd(text)}) {
    int told = 0;
    for (size_t at = 4; at < file.size(); ++at) {
      std::string damaged = file, got;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      const absl::Status s = Read(damaged, 512, &got);
      told += !s.ok();
      // Time, flags and system in a gzip header, and bits after the last block, mean nothing.
      REQUIRE((!s.ok() || got == text));
      if (!s.ok()) REQUIRE(s.code() == absl::StatusCode::kDataLoss);
    }
    CHECK(told + 12 >= static_cast<int>(file.size()));
  }
  std::string got;
  std::string file = Gzip(text);
  const size_t size = file.size();
  CHECK(Read(file + "trailing", 512, &got).message() ==
        "f is damaged at byte " + std::to_string(size + 2) +
            ": incorrect header check (gzip); fetch or compress it again");
  file[size - 5] ^= 1;
  CHECK(Read(file, 512, &got).message() ==
        "f is damaged at byte " + std::to_string(size - 4) +
            ": incorrect data check (gzip); fetch or compress it again");
  CHECK(std::string(Read(Zstd(text) + "trailing", 4096, &got).message())
            .find("f is damaged near byte ") == 0);
}

TEST_CASE("an error of the sink ends it", "[data][decompressor]") {
  for (const std::string& file : {Gzip(Text(5, 1'000'000)), Zstd(Text(5, 1'000'000))}) {
    int calls = 0;
    const auto decompressor = Decompressor::Make(CompressionOf(file), "f");
    CHECK(decompressor
              ->Push(file,
                     [&](absl::string_view) {
                       ++calls;
                       return absl::ResourceExhaustedError("full");
                     })
              .message() == "full");
    CHECK(calls == 1);
  }
}

TEST_CASE("files are told by their first bytes", "[data][decompressor]") {
  CHECK(CompressionOf("") == Compression::kNone);
  CHECK(CompressionOf("1 1:1") == Compression::kNone);
  CHECK(CompressionOf("\x1f") == Compression::kNone);
  CHECK(CompressionOf("\x1f\x8b") == Compression::kGzip);
  CHECK(CompressionOf("\x28\xb5\x2f\xfd") == Compression::kZstd);
  CHECK(CompressionOf("\x5f\x2a\x4d\x18") == Compression::kZstd);
  CHECK(CompressionOf("\x28\xb5\x2f") == Compression::kNone);
  CHECK(CompressionName(Compression::kGzip) == "gzip");
}

}  // namespace strata
