// What tests/catch_main.cc and Catch2 lack: cases that report themselves as skipped, and what
// tools/test was asked for.
#ifndef STRATA_TESTS_SKIP_H_
#define STRATA_TESTS_SKIP_H_

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace strata {

// `tools/test --long`: run full sizes.
inline bool LongRun() {
  const char* value = std::getenv("STRATA_LONG");
  return value != nullptr && *value != '\0';
}

// How many random operations a case does: fewer under a sanitizer, which takes 5 to 20 times as
// long for each and looks for other faults than the oracle does.
constexpr size_t Operations(size_t ordinary) {
#if defined(__SANITIZE_ADDRESS__)
  return ordinary / 20;
#elif defined(__SANITIZE_THREAD__)
  return ordinary / 25;
#else
  return ordinary;
#endif
}

// `tools/test --data DIR`: folder of the real data sets (frappe/, criteo_tiny/). Nothing without.
inline std::optional<std::string> DataFolder() {
  const char* value = std::getenv("STRATA_TEST_DATA");
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// One line on the real stderr (Catch2 redirects std::cerr), which tools/test finds in the test's
// log: the case counts as skipped, not as passed.
inline void ReportSkipped(const std::string& case_name, const std::string& reason) {
  std::fprintf(stderr, "\nSKIPPED: %s: %s\n", case_name.c_str(), reason.c_str());
}

}  // namespace strata

// Leaves the running TEST_CASE and reports it as skipped. Not for use inside sections or helpers.
#define STRATA_SKIP(reason)                                                            \
  do {                                                                                 \
    ::strata::ReportSkipped(Catch::getResultCapture().getCurrentTestName(), (reason)); \
    return;                                                                            \
  } while (false)

#endif  // STRATA_TESTS_SKIP_H_
