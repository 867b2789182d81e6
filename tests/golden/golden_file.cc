#include "tests/golden/golden_file.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace strata::golden {
namespace {

constexpr char kHead[] =
    "# Expected values of tests/golden. README.md says when one may change, and how.\n";
constexpr char kEntry[] = "== ";

// Nothing: compare.
std::string WriteTo() {
  const char* folder = std::getenv("STRATA_WRITE_GOLDENS");
  return folder == nullptr ? "" : folder;
}

// Text whose last line ends.
std::string Lines(const std::string& text) {
  return text.empty() || text.back() == '\n' ? text : text + '\n';
}

// "line 3 is the first that differs" or "".
std::string FirstDifference(const std::string& expected, const std::string& got) {
  std::istringstream a(expected), b(got);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "";
    if (more_a == more_b && x == y) continue;
    return "first difference, in line " + std::to_string(line) +
           ":\n  expected: " + (more_a ? x : "(no line)") +
           "\n  got:      " + (more_b ? y : "(no line)") + "\n";
  }
}

}  // namespace

std::string SourcePath(const std::string& name) {
  const char* root = std::getenv("TEST_SRCDIR");
  REQUIRE(root != nullptr);  // run by Bazel
  return std::string(root) + "/strata/tests/golden/" + name;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path);
  REQUIRE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Fingerprint(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

GoldenFile::GoldenFile(const std::string& name) : file_("expected/" + name + ".txt") {
  if (!WriteTo().empty()) return;
  std::istringstream in(ReadWhole(SourcePath(file_)));
  std::string* entry = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(kEntry, 0) == 0) {
      entry = &expected_[line.substr(sizeof(kEntry) - 1)];
    } else if (entry != nullptr) {
      *entry += line + '\n';
    }
  }
  INFO(file_ << " holds no entry");
  REQUIRE(!expected_.empty());
}

void GoldenFile::Check(const std::string& name, const std::string& got) {
  if (!checked_.insert(name).second) FAIL("two values are named " << name);
  got_.emplace_back(name, Lines(got));
  if (!WriteTo().empty()) return;
  const auto it = expected_.find(name);
  const std::string expected = it == expected_.end() ? "(no such entry)\n" : it->second;
  if (expected == Lines(got)) return;
  FAIL_CHECK("golden value " << name << " of tests/golden/" << file_ << " is not as expected\n"
                             << FirstDifference(expected, Lines(got)) << "expected:\n"
                             << expected << "got:\n"
                             << Lines(got));
}

void GoldenFile::Finish() {
  for (const auto& [name, text] : expected_) {
    if (checked_.contains(name)) continue;
    FAIL_CHECK("golden value " << name << " of tests/golden/" << file_
                               << " is expected, and nothing came\nexpected:\n"
                               << text);
  }
  if (WriteTo().empty()) return;
  std::ofstream out(WriteTo() + "/" + file_, std::ios::binary);
  out << kHead;
  for (const auto& [name, text] : got_) out << kEntry << name << '\n' << text;
  out.flush();
  INFO("cannot write " << WriteTo() << "/" << file_);
  REQUIRE(out.good());
}

}  // namespace strata::golden
