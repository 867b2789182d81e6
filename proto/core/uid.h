// Ids that are drawn at random, 128 bits each, so that no two places give out the same: which
// cluster, and which job, whatever its number there.
// Tested by tests/proto/core/values_test.cc
#ifndef STRATA_PROTO_CORE_UID_H_
#define STRATA_PROTO_CORE_UID_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/core/ids.h"

namespace strata {

// 32 hexadecimal digits, lower case, `high` first.
std::string UidText(uint64_t high, uint64_t low);

template <typename Tag>
struct Uid {
  uint64_t high = 0;
  uint64_t low = 0;

  // Nobody's: what is not set.
  constexpr bool nil() const { return high == 0 && low == 0; }
  std::string text() const { return UidText(high, low); }
  // Nothing unless `text` is 32 such digits, not all of them 0.
  static std::optional<Uid> Parse(absl::string_view text);

  friend constexpr bool operator==(const Uid&, const Uid&) = default;
  friend constexpr auto operator<=>(const Uid&, const Uid&) = default;
};

// Of a cluster: made with its scheduler's metadata store.
using ClusterId = Uid<struct ClusterIdTag>;
// Of a job: drawn when it is submitted. Job numbers begin at 1 in every cluster.
using JobUid = Uid<struct JobUidTag>;
// Of one start of a scheduler: two that go on from copies of one folder count the same terms.
using StartId = Uid<struct StartIdTag>;

// Which job, among those of all clusters.
struct JobIdentity {
  ClusterId cluster;
  JobUid job;

  bool nil() const { return cluster.nil() && job.nil(); }
  friend constexpr bool operator==(const JobIdentity&, const JobIdentity&) = default;
  friend constexpr auto operator<=>(const JobIdentity&, const JobIdentity&) = default;
};
// "job UID of cluster ID".
std::string Describe(const JobIdentity& identity);
// Nothing unless both are ids.
std::optional<JobIdentity> ParseJobIdentity(absl::string_view cluster, absl::string_view job);

// Who wrote a file of a checkpoint.
struct FileWriter {
  JobIdentity identity;
  Generation generation;
  uint64_t cut = 0;

  friend constexpr bool operator==(const FileWriter&, const FileWriter&) = default;
};
std::string Describe(const FileWriter& writer);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_UID_H_
