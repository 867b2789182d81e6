// Tables and amounts for people.
// Tested by tests/tools/cli/inspect/text_test.cc
// Tested by tests/tools/cli/base/job_text_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_TEXT_TABLE_H_
#define STRATA_TOOLS_CLI_BASE_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart, a newline after each row. All rows have
// as many cells as the first. REQUIRES: rows is not empty.
std::string TextTable(const std::vector<TextRow>& rows);

// "17 B", "1.2 KiB", "3.4 GiB".
std::string BytesText(double bytes);

// "950", "12.3k", "4.56M", "7.8G": three digits or so.
std::string CountText(double count);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_TEXT_TABLE_H_
