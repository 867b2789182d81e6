#include "tools/cli/base/listing_text.h"

#include "absl/strings/str_cat.h"

namespace strata {

nlohmann::ordered_json ListingAsJson(const InputListing& listing) {
  return {{"files", listing.files()},
          {"bytes", listing.bytes()},
          {"first", listing.first()},
          {"last", listing.last()}};
}

std::string ListingText(absl::string_view what, const InputListing& listing) {
  std::string text =
      absl::StrCat("  ", what, " ", listing.files(), listing.files() == 1 ? " file, " : " files, ",
                   listing.bytes(), " bytes: ", listing.first());
  if (listing.files() > 1) {
    absl::StrAppend(&text, listing.files() > 2 ? " ... " : " ", listing.last());
  }
  return text + "\n";
}

}  // namespace strata
