#include "proto/core/cut_file_name.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace strata {
namespace {

constexpr absl::string_view kEnd = ".strata";

template <typename Number>
bool Take(absl::string_view text, absl::string_view before, Number* number) {
  return absl::ConsumePrefix(&text, before) && absl::SimpleAtoi(text, number);
}

}  // namespace

std::string NameWhileWritten(absl::string_view name, const JobUid& job) {
  return absl::StrCat(name, ".", job.text(), ".tmp");
}

std::string CutFileName::text() const {
  std::string name = absl::StrFormat("shard-%05d", shard.value);
  if (sequence != 0) absl::StrAppend(&name, ".", sequence);
  absl::StrAppend(&name, "-g", generation.value, "-c", cut);
  if (epoch != 0) absl::StrAppend(&name, "-e", epoch);
  if (link != 0) absl::StrAppend(&name, "-l", link);
  absl::StrAppend(&name, kEnd);
  return begun ? NameWhileWritten(name, *begun) : name;
}

std::optional<CutFileName> CutFileName::Parse(absl::string_view name) {
  CutFileName out;
  absl::string_view rest = name;
  if (absl::ConsumeSuffix(&rest, ".tmp")) {
    const size_t dot = rest.rfind('.');
    if (dot == absl::string_view::npos) return std::nullopt;
    out.begun = JobUid::Parse(rest.substr(dot + 1));
    if (!out.begun) return std::nullopt;
    rest = rest.substr(0, dot);
  }
  if (!absl::ConsumeSuffix(&rest, kEnd) || !absl::ConsumePrefix(&rest, "shard-")) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '-');
  if (parts.size() < 3 || parts.size() > 5) return std::nullopt;
  const std::vector<absl::string_view> which = absl::StrSplit(parts[0], '.');
  const bool whole = which.size() <= 2 && absl::SimpleAtoi(which[0], &out.shard.value) &&
                     (which.size() == 1 || absl::SimpleAtoi(which[1], &out.sequence)) &&
                     Take(parts[1], "g", &out.generation.value) && Take(parts[2], "c", &out.cut);
  for (size_t i = 3; i < parts.size(); ++i) {
    if (!Take(parts[i], "e", &out.epoch) && !Take(parts[i], "l", &out.link)) return std::nullopt;
  }
  // What is written in another way is somebody else's.
  if (!whole || out.text() != name) return std::nullopt;
  return out;
}

}  // namespace strata
