#include "scheduler/state/checkpoint_identity.h"

namespace strata::scheduler {
namespace {

// But for the cut.
template <typename Message>
CheckpointIdentity Common(const Message& message) {
  CheckpointIdentity out;
  out.set_cluster_id(message.cluster_id());
  out.set_job_uid(message.job_uid());
  out.set_generation(message.generation());
  out.set_step(message.step());
  out.set_model_hash(message.model_hash());
  return out;
}

}  // namespace

CheckpointIdentity IdentityOf(const Manifest& manifest) {
  CheckpointIdentity out = Common(manifest);
  out.set_cut(manifest.cut());
  return out;
}

CheckpointIdentity IdentityOf(const CheckpointRecord& record) {
  CheckpointIdentity out = Common(record);
  out.set_cut(record.of_cut());
  return out;
}

}  // namespace strata::scheduler
