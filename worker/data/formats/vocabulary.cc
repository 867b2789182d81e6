#include "worker/data/formats/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/formats/number_text.h"

namespace strata {

absl::StatusOr<std::shared_ptr<const Vocabulary>> Vocabulary::Parse(std::string text,
                                                                    const std::string& name) {
  std::shared_ptr<Vocabulary> made(new Vocabulary(std::move(text)));
  absl::string_view rest = made->text_;
  if (rest.substr(0, 3) == "\xef\xbb\xbf") rest.remove_prefix(3);
  for (uint64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    absl::string_view value = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!value.empty() && value.back() == '\r') value.remove_suffix(1);
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

}  // namespace strata
