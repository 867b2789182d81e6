#include "tests/server/scripted_cluster.h"

#include "proto/core/ids.h"
#include "proto/wire/message_codec.h"

namespace strata::server {

ServerJobDirective* AddJob(NodeDirective& directive, const std::string& durability) {
  ServerJobDirective* job = directive.add_server_jobs();
  job->set_job(1);
  job->set_cluster_id(kScriptedIdentity.cluster.text());
  job->set_job_uid(kScriptedIdentity.job.text());
  job->set_generation(1);
  job->set_map_epoch(3);
  job->mutable_shape()->set_fields(5);
  ShardAssignment* shard = job->add_shards();
  shard->set_last_partition(15);
  TrainingJob& spec = *job->mutable_spec();
  spec.set_api_version("strata/v1");
  spec.set_kind("TrainingJob");
  spec.mutable_metadata()->set_name("job");
  spec.mutable_spec()->mutable_data()->set_format("libfm");
  spec.mutable_spec()->mutable_data()->add_train("x");
  spec.mutable_spec()->mutable_model()->set_type("lr");
  spec.mutable_spec()->mutable_training()->set_lanes(1);
  spec.mutable_spec()->mutable_storage()->set_partitions(16);
  spec.mutable_spec()->mutable_storage()->set_durability(durability);
  return job;
}

bool HasState(const NodeReport& r, ServerJobReport::State state) {
  return r.server_jobs_size() == 1 && r.server_jobs(0).state() == state;
}

absl::Status OpenSession(DataTransport& transport, const std::string& address) {
  const wire::Header header = {JobId(1), SessionId(5), Generation(1), MapEpoch(3)};
  return transport.Connect(address)
      ->CallAndWait(DataMethod::kOpenSession,
                    wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header, kScriptedIdentity)),
                    absl::Seconds(30))
      .status();
}

}  // namespace strata::server
