// Parts of one kind, found by name in a checkpoint, and the entries of a comparison that are made
// of them. Pure.
// Tested by tests/proto/job/schema/schema_differences_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_PARTS_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_entries.h"

namespace strata {

// The checkpoint's parts of one kind by what they are called now.
class Places {
 public:
  template <typename List, typename Names>
  Places(const List& saved, const Names& renaming) : found_(static_cast<size_t>(saved.size())) {
    for (int i = 0; i < saved.size(); ++i) {
      std::string now(renaming.Now(saved[i].name()));
      if (!now.empty()) at_.emplace(std::move(now), i);
    }
  }
  // The place of `name`, which counts as found; or -1.
  int Find(const std::string& name) {
    const auto at = at_.find(name);
    if (at == at_.end()) return -1;
    Found(at->second);
    return at->second;
  }
  void Found(int place) { found_[static_cast<size_t>(place)] = true; }
  bool found(int place) const { return found_[static_cast<size_t>(place)]; }

 private:
  std::map<std::string, int> at_;
  std::vector<bool> found_;
};

// Adds entries of parts of one kind. The mapping outlives it.
class PartEntries {
 public:
  PartEntries(SchemaPart part, SchemaMapping* out) : part_(part), out_(out) {}

  SchemaEntry& Add(SchemaChange change, const std::string& name, std::string text) {
    out_->entries.push_back({change, part_, name, std::move(text)});
    return out_->entries.back();
  }
  // With the part's kind and name in front: "table features: ...".
  SchemaEntry& Say(SchemaChange change, const std::string& name, absl::string_view what) {
    return Add(change, name, absl::StrCat(PartName(part_), " ", name, ": ", what));
  }
  // Loaded under its own name or another. `beside`: what else there is to tell.
  SchemaEntry& Same(const std::string& saved, const std::string& now,
                    absl::string_view beside = "") {
    if (saved == now) return Add(SchemaChange::kLoaded, now, absl::StrCat(now, beside));
    return Add(SchemaChange::kRenamed, now, absl::StrCat(saved, " as ", now, beside));
  }
  // Its state is another optimizer's; "": it is not.
  void Optimizer(const std::string& name, const std::string& change) {
    if (!change.empty()) Say(SchemaChange::kOtherOptimizer, name, change);
  }
  // All but what was found, whatever it is called: a rename may give its name to another part.
  template <typename List, typename Text>
  void Dropped(const List& saved, const Places& places, const Text& text) {
    for (int i = 0; i < saved.size(); ++i) {
      if (!places.found(i)) Add(SchemaChange::kDropped, saved[i].name(), text(saved[i]));
    }
  }

  // The first that comes behind another one, of those that are in both. `order`: their places in
  // the checkpoint, as they come now.
  template <typename List, typename Names>
  void Turned(const List& saved, const Names& renaming, const std::vector<int>& order) {
    const auto turned = std::is_sorted_until(order.begin(), order.end());
    if (turned == order.end()) return;
    const std::string &name = saved[*turned].name(), &other = saved[*(turned - 1)].name();
    Add(SchemaChange::kOtherOrder, renaming.Now(name),
        absl::StrCat(PartName(part_), " ", name, " came before ", other,
                     ", and comes after it now"));
  }

 private:
  const SchemaPart part_;
  SchemaMapping* const out_;
};

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_PARTS_H_
