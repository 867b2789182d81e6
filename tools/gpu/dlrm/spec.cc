#include "tools/gpu/dlrm/spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "server/table/gpu_memory.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"

namespace strata::gpu_check {
namespace {

constexpr float kRate = 0.01f;
constexpr uint32_t kDepth = 8;  // batches routed ahead, side by side

const char* PrecisionName(ops::gpu::MatmulPrecision precision) {
  if (precision == ops::gpu::MatmulPrecision::kTf32) return "tf32";
  return precision == ops::gpu::MatmulPrecision::kBf16 ? "bf16" : "fp32";
}

}  // namespace

uint64_t HbmBytesFor(uint64_t slots, size_t row_bytes) {
  storage::gpu::GpuShape shape{.row_bytes = row_bytes,
                               .bucket_slots = server::kGpuBucketSlots,
                               .eviction = storage::EvictionKind::kLrfu};
  slots = std::clamp<uint64_t>(slots, server::kGpuBucketSlots, storage::gpu::GpuShape::kMostSlots);
  shape.buckets = static_cast<uint32_t>(slots / server::kGpuBucketSlots);
  shape.places = storage::gpu::GpuShape::kFewestPlaces;
  // Staging places, too, are taken of the limit.
  uint64_t bytes = shape.bytes();
  while (true) {
    const auto fitting =
        storage::gpu::GpuShapeFor(bytes, row_bytes, shape.bucket_slots, shape.eviction);
    if (!fitting.ok() || fitting->buckets >= shape.buckets) return bytes;
    bytes += (shape.buckets - fitting->buckets) * shape.bucket_slots * shape.stride() / 4 + 1;
  }
}

absl::StatusOr<ModelTables> DlrmTables(const DlrmSpec& spec, const TrainingJob& job) {
  return MakeModelTables(job.spec(), spec.fields, spec.numeric);
}

absl::StatusOr<TrainingJob> MakeDlrmJob(const DlrmSpec& spec) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("dlrm-bar");
  JobSpec& s = *job.mutable_spec();
  s.mutable_data()->set_format("criteo");
  s.mutable_data()->add_train("memory");
  s.mutable_model()->set_type("dlrm");
  s.mutable_model()->set_embedding_dim(spec.dim);
  for (const uint32_t width : spec.bottom) s.mutable_model()->add_bottom_hidden(width);
  for (const uint32_t width : spec.top) s.mutable_model()->add_hidden(width);
  s.mutable_optimizer()->mutable_sparse()->set_type("rowwise_adagrad");
  s.mutable_optimizer()->mutable_sparse()->set_learning_rate(kRate);
  s.mutable_optimizer()->mutable_dense()->set_type("adagrad");
  s.mutable_optimizer()->mutable_dense()->set_learning_rate(kRate);
  s.mutable_training()->set_lanes(1);
  s.mutable_training()->set_batch_size(spec.batch);
  s.mutable_training()->set_threads(spec.threads);
  s.mutable_training()->set_pipeline_depth(kDepth);
  s.mutable_worker()->set_precision(PrecisionName(spec.precision));
  StorageSpec& storage = *s.mutable_storage();
  storage.set_durability("memory");
  storage.set_shards_per_server(spec.shards);
  if (absl::Status status = ResolveJob(job); !status.ok()) return status;
  const auto tables = DlrmTables(spec, job);
  if (!tables.ok()) return tables.status();
  const uint64_t shards = uint64_t{spec.shards} * spec.servers;
  const auto slots = static_cast<uint64_t>(static_cast<double>(spec.rows) * spec.hbm_slots /
                                           static_cast<double>(shards));
  const size_t row_bytes = storage::RowLayout::For(tables->tables[0]).row_bytes();
  storage.set_gpu_bytes_per_server(absl::StrCat(spec.shards * HbmBytesFor(slots, row_bytes)));
  if (absl::Status status = ResolveJob(job); !status.ok()) return status;
  return job;
}

}  // namespace strata::gpu_check
