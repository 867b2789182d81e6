// The compiler flags that bits depend on (EXACT.md rule 1), read from the build's own files and
// asked of the compiler.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace strata {
namespace {

constexpr const char* kRequired[] = {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"};
constexpr const char* kForbidden[] = {
    "-ffast-math",
    "-Ofast",
    "-ffp-contract=fast",
    "-ffp-contract=on",
    "-funsafe-math",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fno-signed-zeros",
    "-mrecip",
    "-mdaz-ftz",
    "-fsingle-precision-constant",
    "-fcx-limited-range",
    "-ffp-model",
    "-fno-rounding-math=",
    "-fexcess-precision=fast",
    "-mfpmath",
    "-march=native",
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What is wrong with the flags of a .bazelrc. Flags count where every build gets them: as --copt on
// a line of the `build` command.
std::vector<std::string> Problems(const std::string& bazelrc) {
  std::vector<std::string> problems;
  std::set<std::string> given;
  std::istringstream lines(bazelrc);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string command, word;
    words >> command;
    while (words >> word) {
      for (const char* flag : kForbidden) {
        if (word.find(flag) != std::string::npos) problems.push_back("forbidden: " + word);
      }
      if (command == "build" && word.rfind("--copt=", 0) == 0) given.insert(word.substr(7));
    }
  }
  for (const char* flag : kRequired) {
    if (given.count(flag) == 0) problems.push_back(std::string("missing: ") + flag);
  }
  return problems;
}

TEST_CASE(".bazelrc has the flags that bits depend on, and none that change them", "[ops][exact]") {
  const std::string text = ReadFile(".bazelrc");
  REQUIRE_FALSE(text.empty());
  CHECK(Problems(text) == std::vector<std::string>{});
}

TEST_CASE("the per-instruction-set builds add no flag that changes bits", "[ops][exact]") {
  const std::string text = ReadFile("ops/isa.bzl");
  REQUIRE(text.find("-march=x86-64-v4") != std::string::npos);
  for (const char* flag : kForbidden) {
    INFO(flag);
    CHECK(text.find(flag) == std::string::npos);
  }
}

TEST_CASE("the check sees what it looks for", "[ops][exact]") {
  const std::string good =
      "build --copt=-ffp-contract=off --copt=-fno-math-errno\nbuild --copt=-fno-trapping-math\n";
  CHECK(Problems(good).empty());
  CHECK(Problems("") == std::vector<std::string>{"missing: -ffp-contract=off",
                                                 "missing: -fno-math-errno",
                                                 "missing: -fno-trapping-math"});
  CHECK(Problems(good + "build --copt=-ffast-math\n") ==
        std::vector<std::string>{"forbidden: --copt=-ffast-math"});
  CHECK(Problems(good + "build:fast --cxxopt=-Ofast\n").size() == 1);
  // A comment gives nothing, and a configuration or another command is not every build.
  CHECK(Problems("# build --copt=-ffp-contract=off\n" + good.substr(good.find('\n'))).size() == 2);
  CHECK(Problems("build:other " + good.substr(6)).size() == 2);
}

TEST_CASE("this binary was compiled without contraction and fast mathematics", "[ops][exact]") {
#ifdef __FAST_MATH__
  FAIL("__FAST_MATH__ is defined");
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
  FAIL("__FINITE_MATH_ONLY__ is set");
#endif
  // (1 + e)(1 - e) rounds to 1; fused with the addition of -1 it would leave -e^2.
  volatile float e = 0x1p-13f;
  const float a = 1.0f + e, b = 1.0f - e;
  volatile float minus_one = -1.0f;
  const float c = minus_one;
  CHECK(a * b + c == 0.0f);
}

}  // namespace
}  // namespace strata
