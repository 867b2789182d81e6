// The text of a file of contexts: the YAML half of contexts.h.
#include <yaml-cpp/yaml.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "tools/cli/base/nearest.h"
#include "tools/cli/context/contexts.h"

namespace strata {
namespace {

using Fields = std::vector<std::string>;

const Fields& FieldsOfFile() {
  static const Fields fields = {"current", "before", "contexts"};
  return fields;
}
const Fields& FieldsOfContext() {
  static const Fields fields = {"name", "scheduler", "certs", "insecure", "folder"};
  return fields;
}

// Reads nodes of one file; the first thing that is wrong ends it.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  absl::StatusOr<Contexts> Read(const YAML::Node& root) const {
    Contexts read;
    if (root.IsNull()) return read;
    if (absl::Status s = CheckFields(root, "the file", FieldsOfFile()); !s.ok()) return s;
    absl::Status s = Text(root, "current", "current", read.current);
    if (!s.ok()) return s;
    if (const YAML::Node list = root["contexts"]) {
      if (!list.IsSequence() && !list.IsNull()) {
        return Wrong(list, "contexts: is no list; write each context as '- name: NAME'");
      }
      for (size_t i = 0; i < list.size(); ++i) {
        if (s = ReadContext(list[i], absl::StrCat("contexts[", i, "]"), read); !s.ok()) return s;
      }
    }
    if (s = ReadBefore(root["before"], read); !s.ok()) return s;
    if (read.current.empty() || FindContext(std::as_const(read), read.current) != nullptr) {
      return read;
    }
    return NoSuch(root["current"], "current", read.current, read);
  }

 private:
  absl::Status Wrong(const YAML::Node& node, absl::string_view what) const {
    const YAML::Mark mark = node.Mark();
    return absl::InvalidArgumentError(absl::StrCat(
        file_, mark.is_null() ? "" : absl::StrCat(":", mark.line + 1, ":", mark.column + 1), ": ",
        what));
  }

  absl::Status NoSuch(const YAML::Node& node, absl::string_view place, const std::string& name,
                      const Contexts& read) const {
    return Wrong(
        node, absl::StrCat(place, ": there is no context '", ShownText(name),
                           "'; there are: ", ContextNames(read), "; name one or remove the line"));
  }

  // After the contexts.
  absl::Status ReadBefore(const YAML::Node& list, Contexts& read) const {
    if (!list) return absl::OkStatus();
    if (!list.IsSequence()) {
      return Wrong(list, "before: is no list; write each name as '- NAME', or remove the line");
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string place = absl::StrCat("before[", i, "]");
      if (!list[i].IsScalar()) return Wrong(list[i], absl::StrCat(place, ": is no name"));
      const std::string& name = list[i].Scalar();
      if (FindContext(std::as_const(read), name) == nullptr) {
        return NoSuch(list[i], place, name, read);
      }
      read.before.push_back(name);
    }
    return absl::OkStatus();
  }

  // It is a mapping of these fields, each once.
  absl::Status CheckFields(const YAML::Node& node, absl::string_view place,
                           const Fields& known) const {
    const std::string fields = absl::StrJoin(known, ", ");
    if (!node.IsMap()) return Wrong(node, absl::StrCat(place, ": is no mapping of ", fields));
    std::set<std::string> seen;
    for (const auto& each : node) {
      if (!each.first.IsScalar()) {
        return Wrong(each.first,
                     absl::StrCat(place, ": has a field without a name; fields are ", fields));
      }
      const std::string& name = each.first.Scalar();
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string meant = Nearest(name, known);
        return Wrong(each.first,
                     absl::StrCat(place, ": has no field '", ShownText(name), "'; ",
                                  meant.empty() ? "" : absl::StrCat("did you mean '", meant, "'? "),
                                  "fields are ", fields));
      }
      if (!seen.insert(name).second) {
        return Wrong(each.first, absl::StrCat(place, ": has '", name, "' twice; remove one"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Text(const YAML::Node& map, const char* field, absl::string_view place,
                    std::string& text) const {
    const YAML::Node node = map[field];
    if (!node) return absl::OkStatus();
    if (!node.IsScalar() || node.Scalar().empty()) {
      return Wrong(node, absl::StrCat(place, ": is no text; write it, or remove the line"));
    }
    text = node.Scalar();
    return absl::OkStatus();
  }

  absl::Status ReadContext(const YAML::Node& node, const std::string& place, Contexts& read) const {
    absl::Status s = CheckFields(node, place, FieldsOfContext());
    if (!s.ok()) return s;
    Context context;
    std::string insecure;
    const std::vector<std::pair<const char*, std::string*>> texts = {
        {"name", &context.name},
        {"scheduler", &context.scheduler},
        {"certs", &context.certs},
        {"insecure", &insecure},
        {"folder", &context.folder}};
    for (const auto& [field, text] : texts) {
      if (s = Text(node, field, absl::StrCat(place, ".", field), *text); !s.ok()) return s;
    }
    if (!insecure.empty() && insecure != "true") {
      return Wrong(node["insecure"], absl::StrCat(place, ".insecure: '", ShownText(insecure),
                                                  "' is not true; write true, or certs instead"));
    }
    // So that nothing goes without TLS for a lost line.
    if (context.certs.empty() == insecure.empty()) {
      return Wrong(node, absl::StrCat(place, ": has ",
                                      insecure.empty() ? "neither certs nor" : "both certs and",
                                      " insecure; write one of them"));
    }
    const std::string current = std::exchange(read.current, "");
    s = AddContext(std::move(context), read);
    read.current = current;
    return s.ok() ? s : Wrong(node, absl::StrCat(place, ": ", s.message()));
  }

  const std::string& file_;
};

void EmitText(YAML::Emitter& out, const char* field, const std::string& text) {
  if (!text.empty()) out << YAML::Key << field << YAML::Value << YAML::DoubleQuoted << text;
}

std::string Emitted(const Contexts& contexts) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  EmitText(out, "current", contexts.current);
  if (!contexts.before.empty()) {
    out << YAML::Key << "before" << YAML::Value << YAML::BeginSeq;
    for (const std::string& name : contexts.before) out << YAML::DoubleQuoted << name;
    out << YAML::EndSeq;
  }
  out << YAML::Key << "contexts" << YAML::Value << YAML::BeginSeq;
  for (const Context& c : contexts.all) {
    out << YAML::BeginMap;
    EmitText(out, "name", c.name);
    EmitText(out, "scheduler", c.scheduler);
    EmitText(out, "certs", c.certs);
    if (c.certs.empty()) out << YAML::Key << "insecure" << YAML::Value << true;
    EmitText(out, "folder", c.folder);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq << YAML::EndMap;
  return absl::StrCat("# The clusters that `strata` knows by name; see: strata context --help\n",
                      out.c_str(), "\n");
}

}  // namespace

absl::StatusOr<Contexts> ParseContexts(absl::string_view text, const std::string& file) {
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": byte ", zero + 1, " is zero: it is no YAML; move it away"));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": has ", documents.size(), " YAML documents; leave one (remove '---' lines)"));
    }
    return Reader(file).Read(documents.empty() ? YAML::Node() : documents[0]);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, e.mark.is_null() ? "" : absl::StrCat(":", e.mark.line + 1, ":", e.mark.column + 1),
        ": is no YAML: ", ShownText(e.msg), "; mend the line, or move the file away"));
  }
}

absl::StatusOr<std::string> ContextsText(const Contexts& contexts) {
  std::string text = Emitted(contexts);
  const auto again = ParseContexts(text, "contexts");
  if (!again.ok()) return again.status();
  if (*again == contexts) return text;
  return absl::InvalidArgumentError(
      "contexts: a path has bytes that are no UTF-8, which YAML cannot hold; rename the folder");
}

}  // namespace strata
