#include "proto/job/checks/byte_size.h"

#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/job/checks/shown.h"

namespace strata {

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "'", ShownText(text),
      "' is not a size; write bytes as in \"1048576\", \"4MiB\", \"1.5GiB\" or \"2GB\""));
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  using Wide = unsigned __int128;
  constexpr Wide kLimit = std::numeric_limits<uint64_t>::max();
  Wide number = 0, scale = 1;  // the value is number / scale
  bool point = false, digits = false;
  while (!rest.empty() && (absl::ascii_isdigit(rest[0]) || (rest[0] == '.' && digits && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      number = number * 10 + static_cast<unsigned>(rest[0] - '0');
      if (point) scale *= 10;
      digits = true;
      if (number > kLimit || scale > kLimit) return bad;
    }
    rest.remove_prefix(1);
  }
  if (!digits || (point && scale == 1)) return bad;
  rest = absl::StripAsciiWhitespace(rest);
  Wide unit = 1;
  if (!rest.empty() && rest != "B") {
    const absl::string_view letters = "KMGTP";
    const size_t power = letters.find(rest[0]);
    const absl::string_view tail = rest.substr(1);
    if (power == absl::string_view::npos || (tail != "B" && tail != "iB")) return bad;
    for (size_t i = 0; i <= power; ++i) unit *= tail == "iB" ? 1024 : 1000;
  }
  const Wide bytes = number * unit / scale;
  if (bytes > kLimit) return bad;
  return static_cast<uint64_t>(bytes);
}

}  // namespace strata
