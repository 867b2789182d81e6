#include "tests/worker/client/served_rows.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "proto/core/position.h"
#include "proto/job/job_spec.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"

namespace strata::testing {

JobSpec SmallSpec(uint32_t embedding_dim, const std::vector<uint32_t>& hidden) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("t");
  job.mutable_spec()->mutable_data()->set_format("libfm");
  job.mutable_spec()->mutable_data()->add_train(std::string("x"));
  job.mutable_spec()->mutable_model()->set_type("deepfm");
  job.mutable_spec()->mutable_model()->set_embedding_dim(embedding_dim);
  for (const uint32_t width : hidden) job.mutable_spec()->mutable_model()->add_hidden(width);
  job.mutable_spec()->mutable_storage()->set_partitions(64);
  REQUIRE(ResolveJob(job).ok());
  return job.spec();
}

ModelTables SmallTables(uint32_t embedding_dim, const std::vector<uint32_t>& hidden) {
  auto tables = MakeModelTables(SmallSpec(embedding_dim, hidden), 5, 2);
  REQUIRE(tables.ok());
  return *std::move(tables);
}

float WeightOf(uint64_t key, size_t j) {
  return static_cast<float>(Mix64(key) % 1000) + static_cast<float>(j) / 1024;
}

Buffer ServePull(const ModelTables& tables, const Buffer& request, const wire::ServerState& state,
                 const wire::Ticket& ticket) {
  const auto view = wire::ParsePullRequest(request.span());
  REQUIRE(view.ok());
  const auto& values = request.device_values();
  std::vector<wire::ValueGroup> groups;
  for (size_t g = 0; g < view->groups.size(); ++g) {
    const wire::GroupView& group = view->groups[g];
    const bool there = values != nullptr && values->groups[g] != nullptr;
    CHECK(there == (values != nullptr && group.table == TableId(0)));
    groups.push_back({group.table, group.shard, group.keys(),
                      there ? 0 : tables.tables[group.table.value].dim()});
  }
  auto reply = wire::PullReplyEncoder::Make(groups);
  REQUIRE(reply.ok());
  for (size_t g = 0; g < groups.size(); ++g) {
    const uint32_t dim = tables.tables[groups[g].table.value].dim();
    float* const to = groups[g].dim == 0 ? values->groups[g] : reply->values(g).data();
    for (size_t i = 0; i < groups[g].keys * dim; ++i) {
      const float value = WeightOf(view->groups[g].key(i / dim).value, i % dim);
      std::memcpy(to + i, &value, sizeof(float));
    }
  }
  return reply->Finish(state, wire::PullOutcome::kServed, ticket);
}

}  // namespace strata::testing
