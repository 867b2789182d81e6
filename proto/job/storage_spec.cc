#include "proto/job/storage_spec.h"

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/job/checks/byte_size.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

absl::Status CheckBytes(absl::string_view field, const std::string& text, uint64_t least) {
  absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return Bad(field, bytes.status().message());
  return CheckRange(field, *bytes, least, uint64_t{1} << 60);
}

constexpr absl::Duration kLeastReplaceAfter = absl::Seconds(1);
constexpr absl::Duration kMostReplaceAfter = absl::Hours(24 * 30);

// One number with a unit: what people see in the file is what they get.
absl::StatusOr<absl::Duration> ParseTime(const std::string& text) {
  absl::Duration time;
  const bool plain = text.find_first_not_of("0123456789.") != std::string::npos &&
                     text.find_first_not_of("0123456789.mhs") == std::string::npos &&
                     text.find_first_not_of("mhs", text.find_first_of("mhs")) == std::string::npos;
  if (plain && absl::ParseDuration(text, &time)) return time;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a time; write a number with ms, s, m or h, as in \"90s\""));
}

// Of each shard.
constexpr uint64_t kMaxCopies = 16;

// Without a word on durability the number of copies says it, and the other way round.
absl::Status ResolveCopies(StorageSpec& s) {
  if (s.has_replicas()) {
    STRATA_RETURN_IF_BAD(CheckRange("spec.storage.replicas", s.replicas(), 1, kMaxCopies));
  }
  if (s.durability().empty()) s.set_durability(s.replicas() > 1 ? "replicated" : "logged");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.durability", s.durability(),
                                   {"memory", "logged", "synced", "replicated"}));
  const bool replicated = s.durability() == "replicated";
  if (!s.has_replicas()) s.set_replicas(replicated ? 2 : 1);
  if (s.replicas() > 1 && !replicated) {
    return Bad("spec.storage.replicas",
               absl::StrCat(s.replicas(), " copies need spec.storage.durability replicated, not ",
                            s.durability(), "; give that, or replicas: 1"));
  }
  if (s.replicas() == 1 && replicated) {
    return Bad("spec.storage.durability",
               "'replicated' needs copies, but spec.storage.replicas is 1; give 2 or more, or "
               "durability logged");
  }
  if (!s.has_min_replicas()) s.set_min_replicas(1);
  if (s.min_replicas() < 1 || s.min_replicas() > s.replicas()) {
    return Bad("spec.storage.minReplicas",
               absl::StrCat(s.min_replicas(), " is outside the limits; give a number from 1 to ",
                            s.replicas(), ", which spec.storage.replicas is"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveStorage(const ReplicasSpec& replicas, StorageSpec& s) {
  if (s.dram_bytes_per_server().empty()) s.set_dram_bytes_per_server("0");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.dramBytesPerServer", s.dram_bytes_per_server(), 0));
  if (s.log_bytes_per_server().empty()) s.set_log_bytes_per_server("1GiB");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.logBytesPerServer", s.log_bytes_per_server(), 1));
  if (s.eviction().empty()) s.set_eviction("lrfu");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.eviction", s.eviction(), {"lrfu", "lfu", "lru"}));
  if (s.snapshot_bytes_per_second().empty()) s.set_snapshot_bytes_per_second("384MiB");
  STRATA_RETURN_IF_BAD(
      CheckBytes("spec.storage.snapshotBytesPerSecond", s.snapshot_bytes_per_second(), 0));
  STRATA_RETURN_IF_BAD(ResolveCopies(s));
  if (s.ssd().empty()) s.set_ssd("rowfile");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.ssd", s.ssd(), {"rocksdb", "rowfile"}));
  // An explicit 0 takes the tier away, whatever else is said; without a size it was forgotten.
  if (s.gpu_backend() == "host" && s.gpu_bytes_per_server().empty()) {
    return Bad("spec.storage.gpuBackend",
               "host, but there is no GPU tier; give spec.storage.gpuBytesPerServer too");
  }
  if (s.gpu_bytes_per_server().empty()) s.set_gpu_bytes_per_server("0");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.gpuBytesPerServer", s.gpu_bytes_per_server(), 0));
  if (s.gpu_backend().empty()) s.set_gpu_backend("cuda");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.gpuBackend", s.gpu_backend(), {"cuda", "host"}));
  if (!s.has_partitions()) s.set_partitions(4096);
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.partitions", s.partitions(), 1, 1u << 20));
  if ((s.partitions() & (s.partitions() - 1)) != 0) {
    return Bad("spec.storage.partitions", absl::StrCat(s.partitions(), " is not a power of two"));
  }
  const uint64_t per_server = s.has_shards_per_server() ? s.shards_per_server() : 1;
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.shardsPerServer", per_server, 1, 1u << 20));
  if (per_server * replicas.servers() > s.partitions()) {
    return Bad("spec.storage.partitions",
               absl::StrCat(s.partitions(), " is less than the ", per_server * replicas.servers(),
                            " shards of ", replicas.servers(),
                            " servers; a shard is at least one partition"));
  }
  return absl::OkStatus();
}

absl::Status CheckRecovery(const RecoverySpec& recovery) {
  if (recovery.replace_after().empty()) return absl::OkStatus();
  const absl::StatusOr<absl::Duration> after = ParseTime(recovery.replace_after());
  if (!after.ok()) return Bad("spec.recovery.replaceAfter", after.status().message());
  if (*after < kLeastReplaceAfter || *after > kMostReplaceAfter) {
    return Bad("spec.recovery.replaceAfter",
               absl::StrCat("'", recovery.replace_after(),
                            "' is outside the limits; give a time from 1s to 720h"));
  }
  return absl::OkStatus();
}

absl::Duration ReplaceAfter(const RecoverySpec& recovery, absl::Duration otherwise) {
  if (recovery.replace_after().empty()) return otherwise;
  return ParseTime(recovery.replace_after()).value_or(otherwise);
}

}  // namespace strata::spec
