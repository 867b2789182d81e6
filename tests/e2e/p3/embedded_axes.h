// What a cluster inside one process may look like, and what may happen to it, while it trains a
// model that depends on none of it.
#ifndef STRATA_TESTS_E2E_P3_EMBEDDED_AXES_H_
#define STRATA_TESTS_E2E_P3_EMBEDDED_AXES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/e2e/p3/covering.h"
#include "tests/e2e/p3/models.h"

namespace strata::testing {

// Where rows lie.
struct Tiers {
  const char* name;
  const char* ssd = "";        // below DRAM, which has room for few rows; "": nothing
  const char* hbm_bytes = "";  // above it; "": nothing, "few": the model's own
};

// Of the job in its midst.
enum class Disturbance {
  kNone,
  kServer,           // one loses its memory
  kAllServers,       // at once
  kWorker,           // lost, and back
  kWorkerGone,       // lost for good
  kNearlyAll,        // all servers and a worker
  kGoesOnElsewhere,  // cancelled, and resumed from its checkpoint on another cluster
};

// What servers do with tickets. Of "every n-th", 0 is none and 1 is all.
struct TicketTrouble {
  const char* name;
  uint64_t not_given = 0;
  uint64_t lost = 0;
};

// One row of the table.
struct EmbeddedRow {
  const Model* model;
  uint32_t servers, workers;
  Tiers tiers;
  Disturbance disturbance;
  double when;  // at which part of its steps
  TicketTrouble tickets;
  const char* eviction;  // "": as it is by default, as in all that follow
  bool avx2;
  uint32_t threads, depth;
  const char* durability;
  const char* log_bytes;
  uint32_t cuts;  // a checkpoint after so many steps; 0: none
  uint32_t shards;
  bool into_hbm;  // where it goes on elsewhere

  bool servers_die() const;
  bool workers_die() const;
};

Axes EmbeddedAxes();
// The first axes, whose full product `tools/test --long` runs: model, servers, workers, tiers,
// disturbance.
inline constexpr size_t kMainAxes = 5;
EmbeddedRow EmbeddedRowOf(const Row& row);
std::string ToText(const EmbeddedRow& row);

// The model's job as this row has it.
TrainingJob JobOf(const EmbeddedRow& row, TrainingJob job);

// Where a job goes on that went on elsewhere: as many undisturbed steps as are left on other
// numbers of servers and workers, another SSD tier, with a GPU tier or without.
EmbeddedRow ElsewhereOf(const EmbeddedRow& row);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_P3_EMBEDDED_AXES_H_
