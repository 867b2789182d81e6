// Numbers as text. Strict: the whole text must be the number; no locale, no hexadecimal.
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_NUMBER_TEXT_H_
#define STRATA_WORKER_DATA_FORMATS_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace strata {

enum class NumberError : uint8_t { kNone, kNotANumber, kOutOfRange, kNotFinite };

// Decimal digits only.
NumberError ParseUnsigned(absl::string_view text, uint64_t* out);

// Decimal digits, with an optional '-' or '+'.
NumberError ParseInteger(absl::string_view text, int64_t* out);

// Decimal or exponent notation, with an optional sign; rounded to double, then to float. "nan" and
// "inf" are kNotFinite; what overflows a float is kOutOfRange.
NumberError ParseReal(absl::string_view text, float* out);

// The same without the last rounding: what overflows a double is kOutOfRange.
NumberError ParseDouble(absl::string_view text, double* out);

// What is wrong with a text that ParseReal refused, as "is not a finite number", and the remedy
// where the text alone does not say it.
absl::string_view WhyNoReal(NumberError error);

// 1 for "1", 0 for "0" and "-1", in any notation that ParseDouble reads and to the bit; false for
// all else, as for 0.99999999.
bool ParseLabel(absl::string_view text, float* out);

// `text` for a message: at most 40 bytes, unprintable ones escaped.
std::string Quoted(absl::string_view text);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_NUMBER_TEXT_H_
