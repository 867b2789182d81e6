#include "proto/core/uid.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata {
namespace {

constexpr size_t kDigits = 16;  // of a half

std::optional<uint64_t> ParseHalf(absl::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    const bool number = c >= '0' && c <= '9';
    if (!number && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(number ? c - '0' : c - 'a' + 10);
  }
  return value;
}

}  // namespace

std::string UidText(uint64_t high, uint64_t low) {
  return absl::StrFormat("%016x%016x", high, low);
}

template <typename Tag>
std::optional<Uid<Tag>> Uid<Tag>::Parse(absl::string_view text) {
  if (text.size() != 2 * kDigits) return std::nullopt;
  const auto high = ParseHalf(text.substr(0, kDigits));
  const auto low = ParseHalf(text.substr(kDigits));
  if (!high || !low || (*high == 0 && *low == 0)) return std::nullopt;
  return Uid{*high, *low};
}
template struct Uid<struct ClusterIdTag>;
template struct Uid<struct JobUidTag>;
template struct Uid<struct StartIdTag>;

std::string Describe(const JobIdentity& identity) {
  return absl::StrCat("job ", identity.job.text(), " of cluster ", identity.cluster.text());
}

std::optional<JobIdentity> ParseJobIdentity(absl::string_view cluster, absl::string_view job) {
  const auto c = ClusterId::Parse(cluster);
  const auto j = JobUid::Parse(job);
  if (!c || !j) return std::nullopt;
  return JobIdentity{*c, *j};
}

std::string Describe(const FileWriter& writer) {
  return absl::StrCat(Describe(writer.identity), ", generation ", writer.generation.value, ", cut ",
                      writer.cut);
}

}  // namespace strata
