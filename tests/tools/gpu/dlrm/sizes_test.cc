// How large the dlrm bar's job is, and how it is made smaller.
#include "tools/gpu/dlrm/sizes.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/wire/message_limits.h"
#include "server/table/gpu_memory.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/shape.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/dlrm/spec.h"

namespace strata::gpu_check {
namespace {

constexpr size_t kRowBytes = 128 * 4 + 4 + 8;  // with rowwise_adagrad's state

TEST_CASE("a table of the bytes given has the slots wanted, and few more", "[gpu_check]") {
  for (const uint64_t slots : {1u, 64u, 260u, 100000u, 3000000u}) {
    const auto shape =
        storage::gpu::GpuShapeFor(HbmBytesFor(slots, kRowBytes), kRowBytes, server::kGpuBucketSlots,
                                  storage::EvictionKind::kLrfu);
    INFO(slots << " slots");
    REQUIRE(shape.ok());
    const uint64_t least = slots < 64 ? 64 : slots / 64 * 64;
    CHECK(shape->slots() >= least);
    CHECK(shape->slots() <= least + least / 100);
  }
}

TEST_CASE("the job is that of the bar", "[gpu_check]") {
  const BarSizes sizes;
  DlrmSpec spec = DlrmSpecOf(sizes.dlrm, sizes.mlp_widths);
  CHECK(spec.rows == 32699992);
  CHECK(spec.threads >= 1);
  spec.precision = ops::gpu::MatmulPrecision::kBf16;
  const auto job = MakeDlrmJob(spec);
  REQUIRE(job.ok());
  CHECK(job->spec().storage().durability() == "memory");
  CHECK(job->spec().worker().precision() == "bf16");
  CHECK(job->spec().optimizer().sparse().type() == "rowwise_adagrad");
  CHECK(job->spec().training().batch_size() == 65536);
  CHECK(job->spec().training().mode() == "bsp");
  const auto tables = DlrmTables(spec, *job);
  REQUIRE(tables.ok());
  CHECK(tables->bottom_hidden == std::vector<uint32_t>{512, 256});
  CHECK(tables->hidden == std::vector<uint32_t>{1024, 1024, 512, 256});
  CHECK(tables->embedding_dim + tables->interaction_pairs() == 479);
  CHECK(tables->row_dim() == 128);
  const auto hbm = ParseBytes(job->spec().storage().gpu_bytes_per_server());
  REQUIRE(hbm.ok());
  CHECK(*hbm > spec.rows * 3 / 2 * kRowBytes);
  CHECK(*hbm < spec.rows * 3 / 2 * (kRowBytes + 60));
}

TEST_CASE("the job is halved until device and host have room for it", "[gpu_check]") {
  const BarSizes sizes;
  const auto whole = DlrmBytesOf(sizes.dlrm, sizes.mlp_widths);
  REQUIRE(whole.ok());
  // What the bar is meant for: an H200 with 128 GiB beside it.
  CHECK(whole->device < uint64_t{125} << 30);
  CHECK(whole->host < uint64_t{110} << 30);
  CHECK(whole->host > uint64_t{17} << 30);

  std::string note = "old";
  const DlrmBytes enough = {whole->device * 10 / 9 + 10, whole->host * 10 / 9 + 10};
  auto fitting = FitDlrm(sizes.dlrm, sizes.mlp_widths, enough, &note);
  REQUIRE(fitting.ok());
  CHECK(fitting->batch == 65536);
  CHECK(note.empty());

  for (const DlrmBytes& less :
       {DlrmBytes{whole->device, enough.host}, DlrmBytes{enough.device, whole->host}}) {
    fitting = FitDlrm(sizes.dlrm, sizes.mlp_widths, less, &note);
    REQUIRE(fitting.ok());
    CHECK(fitting->batch == 32768);
    CHECK(fitting->field_rows == 1257692 / 2);
    CHECK(fitting->dim == 128);
    CHECK(note.find("1/2 of the bar's size: ") == 0);
  }
  const auto none = FitDlrm(sizes.dlrm, sizes.mlp_widths, {1 << 20, enough.host}, &note);
  CHECK(absl::IsResourceExhausted(none.status()));
  CHECK(none.status().message().find("1048576 and ") != std::string::npos);
  CHECK(FreeHostBytes() > 0);
}

TEST_CASE("as many steps to warm up as take long enough at more than the wanted speed",
          "[gpu_check]") {
  DlrmSizes sizes;
  CHECK(MostWarmSteps(sizes, 10e6) == 69);  // 0.3 s x 1.5 x 10^7 / 65,536
  CHECK(MostWarmSteps(sizes, 1e6) == 12);
  sizes.batch = 1024;
  CHECK(MostWarmSteps(sizes, 10e6) == kMostWarmSteps);
  sizes.warm_ms = 0;
  CHECK(MostWarmSteps(sizes, 10e6) == sizes.warm_steps);
}

TEST_CASE("as many servers as keep replies below the limit of a message", "[gpu_check]") {
  DlrmSizes sizes;
  CHECK(ServersForMessages(sizes, 1000, 0) == 1);
  const uint64_t most = kMaxMessageBytes * 98 / 100 / (128 * 4);  // rows of a message
  CHECK(ServersForMessages(sizes, most, 0) == 1);
  CHECK(ServersForMessages(sizes, most * 3, 0) == 4);
  CHECK(ServersForMessages(sizes, most, kMaxMessageBytes / 2) == 2);
  // All keys alike, at the bar's size.
  CHECK(ServersForMessages(sizes, 1660000, 10 << 20) == 16);
  CHECK(ServersForMessages(sizes, most * 1000, 0) == 16);  // no more than shards
  sizes.shards = 1;
  CHECK(ServersForMessages(sizes, most * 1000, 0) == 1);
}

}  // namespace
}  // namespace strata::gpu_check
