#include "proto/core/zone.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strata {

absl::Status CheckZone(absl::string_view zone) {
  constexpr absl::string_view kRule =
      "; a zone's name has 1 to 64 letters, digits, '.', '_' and '-'";
  if (zone.empty() || zone.size() > kMaxZoneBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has ", zone.size(), " bytes", kRule));
  }
  const auto bad = std::find_if(zone.begin(), zone.end(), [](char c) {
    return !absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-';
  });
  if (bad == zone.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(zone), "'", kRule));
}

}  // namespace strata
