#include "tests/server/one_shard_job.h"

#include <cstdint>
#include <string>

#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"

namespace strata::server {

void Name(const JobIdentity& identity, ServerJobDirective* job) {
  job->set_cluster_id(identity.cluster.text());
  job->set_job_uid(identity.job.text());
}

ServerJobDirective* AddJob(NodeDirective& directive, const std::string& durability) {
  ServerJobDirective* job = directive.add_server_jobs();
  job->set_job(1);
  Name(kIdentity, job);
  job->set_generation(1);
  job->set_map_epoch(3);
  job->mutable_shape()->set_fields(5);
  job->add_shards()->set_last_partition(15);
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

NodeDirective TwoCopies(const std::string& log) {
  NodeDirective directive;
  for (const uint32_t server : {0u, 1u}) {
    ServerJobDirective* job = AddJob(directive, "logged");
    job->mutable_spec()->mutable_spec()->mutable_training()->set_mode("bsp");
    job->mutable_shards(0)->set_last_partition(7);
    ShardAssignment* other = job->add_shards();
    other->set_shard(1);
    other->set_server(1);
    other->set_first_partition(8);
    other->set_last_partition(15);
    job->set_server_index(server);
    ChainDirective& chain = *job->mutable_chain();
    chain.set_chain_epoch(3);
    chain.set_full(1);
    chain.set_min_replicas(1);
    ChainMember* member = chain.add_members();
    member->set_server("s");
    member->set_log_id(server == 0 ? log : "log-b");
  }
  return directive;
}

}  // namespace strata::server
