#include "worker/data/formats/token_line.h"

namespace strata {

std::string BadFeatureNumber(absl::string_view what, NumberError error, absl::string_view text) {
  if (error == NumberError::kOutOfRange) {
    return absl::StrCat(what, " ", Quoted(text), " is over 18446744073709551615 (2^64 - 1)");
  }
  if (!text.empty() && text[0] == '-') return absl::StrCat(what, " ", Quoted(text), " is negative");
  return absl::StrCat(what, " ", Quoted(text), " is not a whole number");
}

}  // namespace strata
