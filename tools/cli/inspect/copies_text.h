// How the copies of a job's shards are shown.
#ifndef STRATA_TOOLS_CLI_INSPECT_COPIES_TEXT_H_
#define STRATA_TOOLS_CLI_INSPECT_COPIES_TEXT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "proto/strata/control.pb.h"

namespace strata {

// A table with an empty line before it and a header line; empty where no shard has copies.
std::string CopiesTable(const JobShards& shards);
// Of one server's shards, the head first.
nlohmann::ordered_json CopiesJson(const ShardServer& server);

// Steps that a copy is behind the head of its chain, of the shard that is furthest behind. Nothing:
// one of the two has not said where it is, or lacks a shard.
std::optional<uint64_t> LagOf(const CopyStatus& copy, const CopyStatus& head);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_COPIES_TEXT_H_
