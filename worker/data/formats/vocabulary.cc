#include "worker/data/formats/vocabulary.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/data/formats/number_text.h"

namespace strata {
namespace {

// Without a byte order mark.
absl::string_view Values(absl::string_view text) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  return text;
}

// The first value of `rest`, which begins behind its line then.
absl::string_view TakeValue(absl::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  absl::string_view value = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (!value.empty() && value.back() == '\r') value.remove_suffix(1);
  return value;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Vocabulary>> Vocabulary::Parse(std::string text,
                                                                    const std::string& name) {
  std::shared_ptr<Vocabulary> made(new Vocabulary(std::move(text)));
  absl::string_view rest = Values(made->text_);
  for (uint64_t number = 1; !rest.empty(); ++number) {
    const absl::string_view value = TakeValue(rest);
    const auto at = [&] { return absl::StrCat("vocabulary file ", name, ":", number, ": "); };
    if (value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          at(), "the line is empty; remove it (a missing value has a row of its own)"));
    }
    if (number > kMostValues) {
      return absl::InvalidArgumentError(
          absl::StrCat(at(), "more than ", kMostValues, " values; have them hashed instead"));
    }
    const auto [it, fresh] = made->lines_.try_emplace(value, static_cast<uint32_t>(number));
    if (fresh) continue;
    return absl::InvalidArgumentError(absl::StrCat(at(), Quoted(value), " is in line ", it->second,
                                                   " too; remove one of the two lines"));
  }
  if (made->lines_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary file ", name, " is empty; write a value a line to it"));
  }
  return std::shared_ptr<const Vocabulary>(std::move(made));
}

std::vector<std::string> Vocabulary::Fingerprints(const std::vector<uint64_t>& counts) const {
  std::vector<std::string> out;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  absl::string_view rest = Values(text_);
  uint64_t hashed = 0;
  for (const uint64_t count : counts) {
    for (; hashed < count; ++hashed) {
      const absl::string_view value = TakeValue(rest);
      XXH3_128bits_update(&state, value.data(), value.size());
      XXH3_128bits_update(&state, "\n", 1);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    out.push_back(absl::StrFormat("%016x%016x", hash.high64, hash.low64));
  }
  return out;
}

std::string Vocabulary::Beginning(uint64_t count) const {
  const absl::string_view all = Values(text_);
  absl::string_view rest = all;
  for (uint64_t i = 0; i < count; ++i) TakeValue(rest);
  return std::string(all.substr(0, all.size() - rest.size()));
}

}  // namespace strata
