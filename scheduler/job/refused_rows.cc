#include "scheduler/job/refused_rows.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

using Rows = google::protobuf::RepeatedPtrField<RefusedRow>;

Rows::iterator Find(const RefusedRow& row, Rows& known) {
  return std::find_if(known.begin(), known.end(), [&](const RefusedRow& other) {
    return other.table() == row.table() && other.key() == row.key();
  });
}

}  // namespace

void RaiseRefused(const Rows& reported, Rows& known) {
  for (const RefusedRow& row : reported) {
    const auto same = Find(row, known);
    if (same != known.end()) {
      same->set_refused(std::max(same->refused(), row.refused()));
    } else if (known.size() < kMostRefusedRows) {
      *known.Add() = row;
    }
  }
}

void NameFields(const Rows& told, Rows& known) {
  if (STRATA_MUTATION("end.refused_rows_unnamed")) return;
  for (const RefusedRow& row : told) {
    const auto same = Find(row, known);
    if (same != known.end() && same->field().empty()) same->set_field(row.field());
  }
}

}  // namespace strata::scheduler
