#include "server/server_load.h"

namespace strata::server {

TableKeys KeysOf(const ServerLoad& load, const TableSpec& table) {
  if (table.id.value < load.of_table.size()) return load.of_table[table.id.value];
  return {load.rows, load.keys_per_push, load.keys_per_step};
}

uint64_t DenseRowsOf(const TableSpec& table) {
  uint64_t rows = 0;
  for (const TensorSpec& tensor : table.tensors) rows += tensor.Rows(table.dim());
  return rows;
}

uint64_t RowsHere(const ServerLoad& load, const TableSpec& table) {
  const uint64_t rows =
      table.kind == TableKind::kDense ? DenseRowsOf(table) : KeysOf(load, table).rows;
  return (rows + load.servers - 1) / load.servers;
}

}  // namespace strata::server
