#include "tools/gpu/check/part_choice.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace strata::gpu_check {
namespace {

bool Means(absl::string_view word, const PartEntry& part) {
  if (part.kind == PartKind::kDevice) return word == part.name;
  const absl::string_view kind = absl::string_view(part.name).substr(0, part.name.find(' '));
  return word == part.name || word == part.program || word == kind;
}

// Whether each part of `all` is named by the flag's list.
absl::StatusOr<std::vector<bool>> Named(const std::vector<PartEntry>& all, absl::string_view flag,
                                        absl::string_view list) {
  std::vector<bool> named(all.size());
  for (absl::string_view word : absl::StrSplit(list, ',')) {
    word = absl::StripAsciiWhitespace(word);
    bool any = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!Means(word, all[i])) continue;
      named[i] = any = true;
    }
    if (any) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": there is no part '", word, "'; give, with commas between them, kinds (",
        "test, bar, memcheck, racecheck), names, or both (\"test pool_test\"), of: ",
        PartWords(all)));
  }
  return named;
}

}  // namespace

std::string PartWords(const std::vector<PartEntry>& all) {
  std::vector<std::string> words;
  std::set<std::string> known;
  for (const PartKind kind : {PartKind::kBar, PartKind::kTest}) {
    for (const PartEntry& part : all) {
      if (part.kind == kind && known.insert(part.program).second) words.push_back(part.program);
    }
  }
  return absl::StrJoin(words, ", ");
}

absl::StatusOr<std::vector<PartEntry>> ChooseParts(const std::vector<PartEntry>& all,
                                                   const PartChoice& choice) {
  std::vector<bool> wanted(all.size(), true), skipped(all.size(), false);
  if (!choice.parts.empty()) {
    auto named = Named(all, "--parts", choice.parts);
    if (!named.ok()) return named.status();
    wanted = *std::move(named);
  }
  if (!choice.skip.empty()) {
    auto named = Named(all, "--skip", choice.skip);
    if (!named.ok()) return named.status();
    skipped = *std::move(named);
  }
  std::vector<PartEntry> chosen;
  bool any = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool device = all[i].kind == PartKind::kDevice;
    if (device && skipped[i]) {
      return absl::InvalidArgumentError("--skip: all parts need the device; it cannot be skipped");
    }
    if (!device && (!wanted[i] || skipped[i])) continue;
    any |= !device;
    chosen.push_back(all[i]);
  }
  // The search for a device alone may be asked for, by its name.
  if (any || choice.parts == "device") return chosen;
  return absl::InvalidArgumentError("--skip: of what --parts names nothing is left");
}

}  // namespace strata::gpu_check
