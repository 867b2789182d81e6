#include "worker/data/formats/number_text.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strata {

NumberError ParseUnsigned(absl::string_view text, uint64_t* out) {
  if (text.empty()) return NumberError::kNotANumber;
  uint64_t value = 0;
  constexpr size_t kSafeDigits = 19;  // 10^19 - 1 < 2^64
  if (text.size() <= kSafeDigits) {
    for (const char c : text) {
      const unsigned digit = static_cast<unsigned char>(c) - '0';
      if (digit > 9) return NumberError::kNotANumber;
      value = value * 10 + digit;
    }
    *out = value;
    return NumberError::kNone;
  }
  bool overflow = false;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - '0';
    if (digit > 9) return NumberError::kNotANumber;
    overflow |= __builtin_mul_overflow(value, uint64_t{10}, &value);
    overflow |= __builtin_add_overflow(value, uint64_t{digit}, &value);
  }
  if (overflow) return NumberError::kOutOfRange;
  *out = value;
  return NumberError::kNone;
}

NumberError ParseInteger(absl::string_view text, int64_t* out) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  uint64_t magnitude = 0;
  const NumberError error = ParseUnsigned(text, &magnitude);
  if (error != NumberError::kNone) return error;
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (magnitude > limit) return NumberError::kOutOfRange;
  *out = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
  return NumberError::kNone;
}

NumberError ParseDouble(absl::string_view text, double* out) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') return NumberError::kNotANumber;
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::invalid_argument || result.ptr != end) {
    return NumberError::kNotANumber;
  }
  if (result.ec == std::errc::result_out_of_range) return NumberError::kOutOfRange;
  if (!std::isfinite(value)) return NumberError::kNotFinite;
  *out = value;
  return NumberError::kNone;
}

NumberError ParseReal(absl::string_view text, float* out) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    *out = static_cast<float>(text[0] - '0');
    return NumberError::kNone;
  }
  double value = 0;
  if (const NumberError error = ParseDouble(text, &value); error != NumberError::kNone) {
    return error;
  }
  if (std::fabs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    return NumberError::kOutOfRange;
  }
  *out = static_cast<float>(value);
  return NumberError::kNone;
}

absl::string_view WhyNoReal(NumberError error) {
  return error == NumberError::kOutOfRange
             ? "is out of float32's range (3.4e38); scale the numbers, or write 0 for tiny ones"
             : "is not a finite number";
}

bool ParseLabel(absl::string_view text, float* out) {
  if (text == "0" || text == "1") {
    *out = static_cast<float>(text[0] - '0');
    return true;
  }
  double value = 0;  // a float would round to what may be a label
  if (ParseDouble(text, &value) != NumberError::kNone) return false;
  if (value != 0.0 && value != 1.0 && value != -1.0) return false;
  *out = value == 1.0 ? 1.0f : 0.0f;
  return true;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 40;
  const bool cut = text.size() > kShown;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShown)), cut ? "..." : "", "\"");
}

}  // namespace strata
