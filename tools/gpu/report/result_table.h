// A report for people.
// Tested by tests/tools/gpu/report/report_test.cc
#ifndef STRATA_TOOLS_GPU_REPORT_RESULT_TABLE_H_
#define STRATA_TOOLS_GPU_REPORT_RESULT_TABLE_H_

#include <cstddef>
#include <string>

#include "tools/gpu/report/report.h"

namespace strata::gpu_check {

inline constexpr size_t kMostTableBytes = 12000;

// What there is, a row for each line of a bar, a row for each part, and the sum of it all, which
// comes last. At most kMostTableBytes: rows that do not fit are counted instead, rows of parts that
// passed first.
std::string ResultTable(const Report& report);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_REPORT_RESULT_TABLE_H_
