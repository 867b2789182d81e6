// The files of a job's input, as its status tells them.
// Tested by tests/tools/cli/base/job_text_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_LISTING_TEXT_H_
#define STRATA_TOOLS_CLI_BASE_LISTING_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/strata/job.pb.h"

namespace strata {

nlohmann::ordered_json ListingAsJson(const InputListing& listing);

// "  trained from 12 files, 3456 bytes: FIRST ... LAST", a line.
std::string ListingText(absl::string_view what, const InputListing& listing);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_LISTING_TEXT_H_
