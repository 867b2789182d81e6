#include "scheduler/job/refused_rows.h"

#include <algorithm>

namespace strata::scheduler {

void RaiseRefused(const google::protobuf::RepeatedPtrField<RefusedRow>& reported,
                  google::protobuf::RepeatedPtrField<RefusedRow>& known) {
  for (const RefusedRow& row : reported) {
    const auto same = std::find_if(known.begin(), known.end(), [&](const RefusedRow& other) {
      return other.table() == row.table() && other.key() == row.key();
    });
    if (same != known.end()) {
      same->set_refused(std::max(same->refused(), row.refused()));
    } else if (known.size() < kMostRefusedRows) {
      *known.Add() = row;
    }
  }
}

}  // namespace strata::scheduler
