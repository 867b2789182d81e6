#include "proto/job/checks/shown.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace strata {
namespace {

// `most` digits tell every number of the type. What six do not tell has all digits before the point
// where `most` suffice for these.
template <typename Number, typename Parse>
std::string Shortest(Number number, int most, const Parse& parse) {
  std::string text;
  for (int digits = 6; digits <= most; ++digits) {
    text = absl::StrFormat("%.*g", digits, number);
    Number back{};
    if (!parse(text, &back) || back != number) continue;
    const bool cut =
        digits > 6 && std::abs(number) < std::pow(10.0, most - 1) && absl::StrContains(text, "e+");
    if (!cut) break;
  }
  return text;
}

}  // namespace

std::string ShownNumber(double number) {
  return Shortest(number, 17,
                  [](const std::string& text, double* out) { return absl::SimpleAtod(text, out); });
}

std::string ShownNumber(float number) {
  return Shortest(number, 9,
                  [](const std::string& text, float* out) { return absl::SimpleAtof(text, out); });
}

std::string ShownText(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      out += absl::CHexEscape(absl::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace strata
