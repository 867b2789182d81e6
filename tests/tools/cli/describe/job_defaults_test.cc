// The comments of job.proto are what users are told (`strata explain`, the manual): every field has
// one, and each default that one states is what ResolveJob fills.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/describe/job_schema.h"

namespace strata {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Defaults in words: the field stays absent. "that": what the comment says before it, of a label's
// mean.
const std::set<std::string> kAbsent = {
    "none",     "the machine's cores", "the server's own folder", "max(4, the cores of a server)",
    "the name", "all lines weigh 1",   "spec.model.hashSeed",     "that",
    "as 1"};

// The stated default for a job of which `types` holds the words that may select one (its model,
// optimizer, ...): "a 1, b 2" and "1; b 2" say it by type. "" when there is none for these types.
std::string Stated(const std::string& text, const std::set<std::string>& types) {
  std::string general;
  std::string part;
  std::vector<std::string> parts;
  int depth = 0;
  for (char c : text) {
    depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    if ((c == ',' || c == ';') && depth == 0 && text.find('"') == std::string::npos) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  for (const std::string& p : parts) {
    const std::string alternative(absl::StripAsciiWhitespace(p));
    const size_t space = alternative.find(' ');
    const std::string word = alternative.substr(0, space);
    const bool selected =
        space != std::string::npos && absl::ascii_islower(word[0]) && kAbsent.count(text) == 0;
    if (selected && types.count(word) > 0) {
      const std::string value = alternative.substr(space + 1);
      return value.substr(0, value.find(" ("));
    }
    if (!selected) general = alternative;
  }
  return general;
}

// The value of a field as a job file would write it; "" when it is absent.
std::string Value(const Message& message, const FieldDescriptor* field) {
  const auto* r = message.GetReflection();
  if (field->is_repeated()) {
    std::vector<std::string> values;
    for (int i = 0; i < r->FieldSize(message, field); ++i) {
      values.push_back(field->cpp_type() == FieldDescriptor::CPPTYPE_STRING
                           ? r->GetRepeatedString(message, field, i)
                           : absl::StrCat(r->GetRepeatedUInt32(message, field, i)));
    }
    return values.empty() ? "" : absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }
  if (!r->HasField(message, field)) return "";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return r->GetString(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(r->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(r->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(r->GetFloat(message, field));
    default:
      return "a type that this test does not know";
  }
}

bool Same(const std::string& stated, const std::string& value, uint32_t lanes) {
  if (stated == value || stated == absl::StrCat("\"", value, "\"")) return true;
  float a = 0, b = 0;
  if (!absl::SimpleAtof(value, &b)) return false;
  const std::vector<std::string> quotient = absl::StrSplit(stated, " / lanes");
  if (!absl::SimpleAtof(quotient[0], &a)) return false;
  if (quotient.size() == 2) return Approx(a / static_cast<float>(lanes)) == b;
  return a == b;
}

// A job that leaves out whatever may be left out, and the words that select its defaults.
struct Variant {
  std::string name;
  std::function<void(JobSpec&)> change;
};

std::vector<OptimizerConfig*> Optimizers(JobSpec& s) {
  OptimizersSpec& o = *s.mutable_optimizer();
  return {o.mutable_sparse(), o.mutable_dense(), o.mutable_linear()};
}

// The one table of all fields.
TableConfig& AddTable(JobSpec& s) {
  for (int i = 1; i <= 26; ++i) {
    FieldConfig& field = *s.add_fields();
    field.set_name(absl::StrCat("C", i));
    field.set_kind("categorical");
    field.set_table("t");
  }
  TableConfig& table = *s.add_tables();
  table.set_name("t");
  return table;
}

void SetSchedule(const std::string& type, OptimizerConfig* o) {
  o->mutable_schedule()->set_type(type);
  o->mutable_schedule()->set_decay_steps(10);
}

void SetLifeCycle(const std::string& type, LifeCycleSpec* life_cycle) {
  AdmissionSpec& a = *life_cycle->mutable_admission();
  if (type != "always") a.set_type(type);
  if (type == "exact" || type == "counting") a.set_min_steps(3);
  if (type == "probability") a.set_probability(0.5f);
  RemovalSpec& r = *life_cycle->mutable_removal();
  r.mutable_count()->set_below(3);
  r.mutable_count()->set_idle_steps(3);
  r.mutable_score()->set_below(0.5f);
  r.mutable_norm()->set_below(0.5f);
}

std::vector<Variant> Variants() {
  std::vector<Variant> all = {{"criteo", [](JobSpec&) {}}};
  all.push_back({"csv", [](JobSpec& s) {
                   s.mutable_data()->set_format("csv");
                   ColumnsSpec& c = *s.mutable_data()->mutable_columns();
                   c.set_label("y");
                   c.add_categorical("a");
                 }});
  all.push_back({"multi-valued csv", [](JobSpec& s) {
                   s.mutable_data()->set_format("csv");
                   ColumnsSpec& c = *s.mutable_data()->mutable_columns();
                   c.set_label("y");
                   c.add_categorical("a");
                   c.add_multi_valued()->set_column("b");
                 }});
  for (const char* kind : {"categorical", "multiValued", "numeric"}) {
    all.push_back({absl::StrCat(kind, " field"), [kind](JobSpec& s) {
                     s.mutable_data()->set_format("csv");
                     s.add_labels()->set_name("y");
                     FieldConfig& field = *s.add_fields();
                     field.set_name("a");
                     field.set_kind(kind);
                     if (field.kind() != "numeric") field.mutable_vocabulary()->set_file("/v");
                   }});
  }
  all.push_back({"sequence field", [](JobSpec& s) {
                   s.mutable_data()->set_format("csv");
                   s.mutable_model()->set_type("din");
                   s.add_labels()->set_name("y");
                   s.add_tables()->set_name("t");
                   for (const char* kind : {"categorical", "sequence"}) {
                     s.add_fields()->set_name(kind);
                     s.mutable_fields(s.fields_size() - 1)->set_kind(kind);
                     s.mutable_fields(s.fields_size() - 1)->set_table("t");
                   }
                   s.mutable_fields(1)->set_max_length(5);
                 }});
  for (const char* kind : {"binary", "real", "count"}) {
    all.push_back({absl::StrCat(kind, " label"), [kind](JobSpec& s) {
                     s.mutable_data()->set_format("csv");
                     s.mutable_data()->mutable_columns()->add_categorical("a");
                     LabelConfig& label = *s.add_labels();
                     label.set_name("y");
                     label.set_column("y");
                     if (std::string(kind) != "binary") label.set_kind(kind);
                   }});
  }
  all.push_back({"huber label", [](JobSpec& s) {
                   s.mutable_data()->set_format("csv");
                   s.mutable_data()->mutable_columns()->add_categorical("a");
                   LabelConfig& label = *s.add_labels();
                   label.set_name("y");
                   label.set_column("y");
                   label.set_kind("real");
                   label.set_loss("huber");
                 }});
  all.push_back({"label of libfm", [](JobSpec& s) {
                   s.mutable_data()->set_format("libfm");
                   s.add_labels()->set_name("y");
                 }});
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    all.push_back({type, [type](JobSpec& s) { s.mutable_model()->set_type(type); }});
  }
  for (const char* type : {"sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "ftrl"}) {
    all.push_back({type, [type](JobSpec& s) {
                     for (OptimizerConfig* o : Optimizers(s)) o->set_type(type);
                   }});
    all.push_back({absl::StrCat("table of ", type), [type](JobSpec& s) {
                     TableConfig& table = AddTable(s);
                     table.mutable_optimizer()->set_type(type);
                     table.mutable_linear()->set_type(type);
                   }});
  }
  all.push_back({"initFrom",
                 [](JobSpec& s) { s.mutable_model()->mutable_init_from()->set_checkpoint("/c"); }});
  for (const char* mode : {"bsp", "async", "downpour", "easgd"}) {
    all.push_back({mode, [mode](JobSpec& s) { s.mutable_training()->set_mode(mode); }});
  }
  for (const char* type : {"step", "cosine", "poly"}) {
    all.push_back({absl::StrCat(type, " schedule"), [type](JobSpec& s) {
                     for (OptimizerConfig* o : Optimizers(s)) SetSchedule(type, o);
                   }});
    all.push_back({absl::StrCat(type, " schedule of a table"), [type](JobSpec& s) {
                     TableConfig& table = AddTable(s);
                     SetSchedule(type, table.mutable_optimizer());
                     SetSchedule(type, table.mutable_linear());
                   }});
  }
  for (const char* type : {"always", "exact", "counting", "probability"}) {
    all.push_back({absl::StrCat(type, " admission"),
                   [type](JobSpec& s) { SetLifeCycle(type, s.mutable_life_cycle()); }});
    all.push_back({absl::StrCat(type, " admission to a table"),
                   [type](JobSpec& s) { SetLifeCycle(type, AddTable(s).mutable_life_cycle()); }});
  }
  return all;
}

TrainingJob Minimal() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  job.mutable_spec()->mutable_data()->set_format("criteo");
  job.mutable_spec()->mutable_data()->add_train("t");
  job.mutable_spec()->mutable_model()->set_type("deepfm");
  return job;
}

// Compares one resolved job with what is stated, leaf by leaf.
class Comparison {
 public:
  explicit Comparison(const TrainingJob& resolved) : job_(resolved) {}

  void Run(const TrainingJob& given) { Compare(JobSchema(), &given, job_, {}); }
  const std::set<std::string>& seen() const { return seen_; }

 private:
  // `given` null: the object was not in the file.
  void Compare(const JobFileField& object, const Message* given, const Message& resolved,
               std::set<std::string> types) {
    const auto* descriptor = resolved.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      if (descriptor->field(i)->name() == "type" || descriptor->field(i)->name() == "kind")
        types.insert(Value(resolved, descriptor->field(i)));
    }
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const auto found =
          std::find_if(object.fields.begin(), object.fields.end(),
                       [&](const JobFileField& f) { return f.name == field->json_name(); });
      REQUIRE(found != object.fields.end());
      const JobFileField& schema = *found;
      if (field->is_map()) continue;  // no default
      if (field->message_type() == nullptr) {
        const std::string was = given == nullptr ? "" : Value(*given, field);
        if (was.empty()) CheckLeaf(object, schema, Value(resolved, field), types);
        continue;
      }
      if (field->is_repeated()) {
        for (int k = 0; k < resolved.GetReflection()->FieldSize(resolved, field); ++k) {
          Compare(schema, &given->GetReflection()->GetRepeatedMessage(*given, field, k),
                  resolved.GetReflection()->GetRepeatedMessage(resolved, field, k), types);
        }
        continue;
      }
      if (!resolved.GetReflection()->HasField(resolved, field)) continue;
      const bool was = given != nullptr && given->GetReflection()->HasField(*given, field);
      Compare(schema, was ? &given->GetReflection()->GetMessage(*given, field) : nullptr,
              resolved.GetReflection()->GetMessage(resolved, field), types);
    }
  }

  void CheckLeaf(const JobFileField& object, const JobFileField& leaf, const std::string& value,
                 const std::set<std::string>& types) {
    INFO(leaf.path << " is '" << value << "'; its comment: " << leaf.text);
    // "Default adam, rate 0.001." of an optimizer speaks of its fields.
    if (leaf.name == "type" && leaf.default_text.empty() && !object.default_text.empty()) {
      if (!absl::StartsWith(object.default_text, "as ")) {
        CHECK(Same(object.default_text.substr(0, object.default_text.find(',')), value, 1));
      }
      return;
    }
    const std::string stated = Stated(leaf.default_text, types);
    if (value.empty()) {
      if (stated.empty() || kAbsent.count(stated) > 0) seen_.insert(leaf.path);
      return;
    }
    seen_.insert(leaf.path);
    if (stated == "the name") return;  // of its own object
    CHECK_FALSE(kAbsent.count(leaf.default_text));
    CHECK(Same(Meant(stated), value, job_.spec().training().lanes()));
  }

  // A default may be another field's value: "spec.model.embeddingDim".
  std::string Meant(const std::string& stated) const {
    if (!absl::StartsWith(stated, "spec.")) return stated;
    const Message* message = &job_;
    const std::vector<std::string> path = absl::StrSplit(stated, '.');
    for (size_t i = 0; i < path.size(); ++i) {
      const auto* descriptor = message->GetDescriptor();
      const FieldDescriptor* field = nullptr;
      for (int k = 0; k < descriptor->field_count(); ++k) {
        if (descriptor->field(k)->json_name() == path[i]) field = descriptor->field(k);
      }
      if (field == nullptr) return stated;
      if (i + 1 == path.size()) return Value(*message, field);
      message = &message->GetReflection()->GetMessage(*message, field);
    }
    return stated;
  }

  const TrainingJob& job_;
  std::set<std::string> seen_;
};

void EachField(const JobFileField& field, const std::function<void(const JobFileField&)>& visit) {
  for (const JobFileField& below : field.fields) {
    visit(below);
    EachField(below, visit);
  }
}

TEST_CASE("every field of a job file has a comment", "[explain]") {
  EachField(JobSchema(), [](const JobFileField& field) {
    INFO(field.path);
    CHECK(!field.text.empty());
    const bool leads_on = !field.fields.empty() && absl::EndsWith(field.text, ":");
    CHECK((absl::EndsWith(field.text, ".") || leads_on));
  });
}

TEST_CASE("every default that a comment states is the one that is filled", "[explain]") {
  std::set<std::string> seen;
  std::vector<std::string> refused;
  for (const Variant& variant : Variants()) {
    INFO(variant.name);
    TrainingJob given = Minimal();
    variant.change(*given.mutable_spec());
    TrainingJob resolved = given;
    const absl::Status status = ResolveJob(resolved);
    if (!status.ok()) {
      refused.push_back(absl::StrCat(variant.name, ": ", std::string(status.message())));
      continue;
    }
    Comparison comparison(resolved);
    comparison.Run(given);
    seen.insert(comparison.seen().begin(), comparison.seen().end());
  }
  // What no job filled, its comment states in vain.
  std::vector<std::string> unseen;
  EachField(JobSchema(), [&](const JobFileField& field) {
    const bool leaf = field.fields.empty();
    if (leaf && !field.default_text.empty() && seen.count(field.path) == 0) {
      unseen.push_back(field.path);
    }
  });
  INFO("refused:\n" << absl::StrJoin(refused, "\n"));
  INFO("stated, but never filled:\n" << absl::StrJoin(unseen, "\n"));
  CHECK(refused.empty());
  CHECK(unseen.empty());
}

TEST_CASE("an optimizer that is not named takes the stated type and rate", "[explain]") {
  TrainingJob job = Minimal();
  REQUIRE(ResolveJob(job).ok());
  const OptimizersSpec& o = job.spec().optimizer();
  for (const auto& [path, config] : {std::pair("spec.optimizer.sparse", &o.sparse()),
                                     std::pair("spec.optimizer.dense", &o.dense())}) {
    const std::vector<std::string> stated =
        absl::StrSplit((*FindField(path))->default_text, ", rate ");
    REQUIRE(stated.size() == 2);
    CHECK(config->type() == stated[0]);
    CHECK(Same(stated[1], absl::StrCat(config->learning_rate()), 1));
  }
}

TEST_CASE("stated defaults are read by type", "[explain]") {
  CHECK(Stated("512", {}) == "512");
  CHECK(Stated("sgd 0.01, ftrl 0.02 (its alpha)", {"ftrl"}) == "0.02");
  CHECK(Stated("sgd 0.01, ftrl 0.02", {"adam"}).empty());
  CHECK(Stated("[4, 4]; dlrm [2, 1]", {"fm"}) == "[4, 4]");
  CHECK(Stated("[4, 4]; dlrm [2, 1]", {"dlrm"}) == "[2, 1]");
  CHECK(Stated("\",\"", {}) == "\",\"");
  CHECK(Same("0.9 / lanes", "0.1125", 8));
  CHECK_FALSE(Same("0.9 / lanes", "0.9", 8));
  CHECK(Same("1e-10", "1e-10", 1));
  CHECK_FALSE(Same("512", "256", 1));
}

}  // namespace
}  // namespace strata
