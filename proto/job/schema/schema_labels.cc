#include "proto/job/schema/schema_labels.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "proto/job/schema/schema_shapes.h"

namespace strata {

bool GoesByLabels(absl::string_view tensor) {
  for (const char* name :
       {"bias", "numeric_weight", "interaction_weight", "output_weight", "output_bias"}) {
    if (tensor == name) return true;
  }
  return false;
}

bool GoesByLabels(const SchemaTable& table) {
  return table.segments_size() > 0 && table.segments(table.segments_size() - 1).name() == "weight";
}

LabelPlaces::LabelPlaces(const Schema& saved, const Schema& now, const Renaming& labels)
    : saved_labels_(saved.labels_size()), labels_(now.labels_size()) {
  if (std::min(saved_labels_, labels_) == 0 || HaveOneLabel(saved, now, labels)) return;
  std::map<std::string, int> places;
  for (int t = 0; t < saved_labels_; ++t) places.emplace(labels.Now(saved.labels(t).name()), t);
  bool same = saved_labels_ == labels_;
  for (int t = 0; t < labels_; ++t) {
    const auto place = places.find(now.labels(t).name());
    places_.push_back(place == places.end() ? -1 : place->second);
    same &= places_.back() == t;
  }
  if (same) places_.clear();
}

bool LabelPlaces::any() const {
  return std::any_of(places_.begin(), places_.end(), [](int place) { return place >= 0; });
}

// Some have their columns in the last dimension, of which those are multiples (numeric_weight).
bool LabelPlaces::SameShapes(const SchemaTensor& saved, const SchemaTensor& now) const {
  const int last = now.shape_size() - 1;
  if (last < 0 || saved.shape_size() != now.shape_size()) return false;
  const auto was = static_cast<uint64_t>(saved_labels_), is = static_cast<uint64_t>(labels_);
  if (saved.shape(last) % was != 0 || now.shape(last) % is != 0) return false;
  return saved.shape(last) / was == now.shape(last) / is &&
         std::equal(now.shape().begin(), now.shape().begin() + last, saved.shape().begin());
}

bool LabelPlaces::SameShapes(const SchemaTable& saved, const SchemaTable& now) const {
  const auto weights = [](const SchemaTable& t) { return t.segments(t.segments_size() - 1).dim(); };
  if (weights(saved) != static_cast<uint32_t>(saved_labels_)) return false;
  if (weights(now) != static_cast<uint32_t>(labels_)) return false;
  SchemaTable as_saved = now;
  as_saved.mutable_segments()->rbegin()->set_dim(weights(saved));
  return SameShape(saved, as_saved);
}

}  // namespace strata
