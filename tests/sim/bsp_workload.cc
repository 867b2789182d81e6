#include "tests/sim/bsp_workload.h"

namespace strata::sim {
namespace {

constexpr uint64_t kWork = 5;

}  // namespace

std::vector<TableSpec> BspWorkload::Tables(bool life_cycle) {
  return life_cycle ? server::TestTablesWithLifeCycle() : server::TestTables();
}

BspWorkload& BspWorkload::Of(uint32_t lanes, uint64_t steps, bool life_cycle) {
  static std::map<std::tuple<uint32_t, uint64_t, bool>, BspWorkload> all;
  BspWorkload& w = all[{lanes, steps, life_cycle}];
  if (w.references_.empty()) {
    w.references_ = server::References(kWork, lanes, steps, Tables(life_cycle));
  }
  return w;
}

const server::LaneWork& BspWorkload::Node(Step step, LaneNode node) {
  auto& work = nodes_[{step.value, node.first, node.end}];
  if (work.examples == 0) work = server::NodeWork(kWork, step.value, node);
  return work;
}

}  // namespace strata::sim
