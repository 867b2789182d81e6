// What labels have side by side: a column of a tensor or a weight of a row for each. Pure.
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_LABELS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_LABELS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_renaming.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Whether a tensor has a column for each label: the outputs' (model_tables.h).
bool GoesByLabels(absl::string_view tensor);
// Whether rows have a weight for each label, the last ones.
bool GoesByLabels(const SchemaTable& table);

// Where the labels of a job are among those of a checkpoint.
class LabelPlaces {
 public:
  // `labels`: what the checkpoint's are called in the job.
  LabelPlaces(const Schema& saved, const Schema& now, const Renaming& labels);

  // By label of the job: its place in the checkpoint, or -1. Empty: each column lies where it did.
  // So it is of the one label of both (HaveOneLabel), and where one of them names none.
  const std::vector<int>& places() const { return places_; }
  bool same() const { return places_.empty(); }
  // Whether some label has something in the checkpoint. REQUIRES: not same().
  bool any() const;

  // Whether they have one shape, but for how many labels they are of.
  bool SameShapes(const SchemaTensor& saved, const SchemaTensor& now) const;
  bool SameShapes(const SchemaTable& saved, const SchemaTable& now) const;

 private:
  const int saved_labels_, labels_;
  std::vector<int> places_;
};

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_LABELS_H_
