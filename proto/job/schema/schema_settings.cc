#include "proto/job/schema/schema_settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_parts.h"
#include "proto/job/schema/schema_text.h"

namespace strata {
namespace {

// "optimizer was sgd(learningRate 0.1), is sgd(learningRate 0.2); pullCodec was none, is bf16".
class Changes {
 public:
  void Add(absl::string_view what, const std::string& saved, const std::string& now) {
    if (saved == now) return;
    const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", what, " was ", shown(saved), ", is ",
                    shown(now));
  }
  // Of a segment or a tensor; `of`: before what changes.
  template <typename Part>
  void AddWeights(absl::string_view of, const Part& saved, const Part& now) {
    Add(absl::StrCat(of, "initializer"), saved.initializer(), now.initializer());
    const OptimizerConfig &was = saved.optimizer(), &is = now.optimizer();
    // State of another optimizer is a difference of the schemas.
    const bool is_told = was.type() != is.type() && !(saved.state().empty() && now.state().empty());
    if (!is_told) Add(absl::StrCat(of, "optimizer"), ConfigText(was), ConfigText(is));
  }
  void Say(const std::string& name, PartEntries& entries) const {
    if (!text_.empty()) entries.Say(SchemaChange::kOtherSettings, name, text_);
  }

 private:
  std::string text_;
};

}  // namespace

void MapSettings(const Schema& saved, const JobSpec& saved_job, const Schema& now,
                 const JobSpec& job, SchemaMapping& mapping) {
  PartEntries tables(SchemaPart::kTable, &mapping), tensors(SchemaPart::kTensor, &mapping);
  for (const auto& [from, to] : mapping.tables) {
    const SchemaTable &was = saved.tables(from), &is = now.tables(to);
    Changes changes;
    for (int s = 0; s < is.segments_size(); ++s) {
      changes.AddWeights(absl::StrCat(is.segments(s).name(), ": "), was.segments(s),
                         is.segments(s));
    }
    const RowsText rows_were = RowsTextOf(saved_job, was.name());
    const RowsText rows_are = RowsTextOf(job, is.name());
    changes.Add("lifeCycle", rows_were.life_cycle, rows_are.life_cycle);
    changes.Add("pullCodec", rows_were.pull_codec, rows_are.pull_codec);
    changes.Say(is.name(), tables);
  }
  for (const auto& [from, to] : mapping.tensors) {
    Changes changes;
    changes.AddWeights("", saved.tensors(from), now.tensors(to));
    changes.Say(now.tensors(to).name(), tensors);
  }
}

}  // namespace strata
