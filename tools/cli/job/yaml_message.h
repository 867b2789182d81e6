// Fills a protobuf message from a YAML document, strictly: what the message does not have is an
// error that names the place and the field that was probably meant.
// Tested by tests/tools/cli/job/file_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_YAML_MESSAGE_H_
#define STRATA_TOOLS_CLI_JOB_YAML_MESSAGE_H_

#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata {

// Reads YAML nodes into messages through reflection; fields go by their camelCase names. Numbers,
// booleans (true, false), strings, lists, nested messages (those with a text form may be text) and
// maps of text to text; no enums or bytes, which job files do not have. One thread.
class YamlReader {
 public:
  // `name` stands in messages: "job.yaml:7:5: spec.training: ...". An empty name leaves out name,
  // line and column (values given on the command line). `root` is the whole file's message,
  // searched for fields that stand in the wrong place.
  YamlReader(std::string name, const google::protobuf::Descriptor* root)
      : name_(std::move(name)), root_(root) {}

  // Reads `node`, a mapping, into `message`, whose own path is `path` ("" at the top). What is
  // wrong goes to problems(); the rest is read all the same.
  void Read(const YAML::Node& node, const std::string& path, google::protobuf::Message* message);

  // Reads one value into a field, replacing what it had. `path` is the field's own.
  void ReadField(const YAML::Node& node, const std::string& path,
                 const google::protobuf::FieldDescriptor* field,
                 google::protobuf::Message* message);

  // In document order, each a line without its end.
  const std::vector<std::string>& problems() const { return problems_; }

  // "name:line:column: " of a field that was read (lines and columns from 1), "name: " of others.
  std::string Where(const std::string& path) const;

 private:
  void Problem(const YAML::Mark& mark, const std::string& path, absl::string_view what);
  void ReadMap(const YAML::Node& node, const std::string& path,
               const google::protobuf::FieldDescriptor* field, google::protobuf::Message* message);
  void ReadValue(const YAML::Node& node, const std::string& path,
                 const google::protobuf::FieldDescriptor* field,
                 google::protobuf::Message* message);

  const std::string name_;
  const google::protobuf::Descriptor* const root_;
  std::vector<std::string> problems_;
  std::map<std::string, YAML::Mark> marks_;  // where each field's value stands
};

// The field that a message of the type of `field` is when it is given as text alone: `initFrom:
// DIR` is `initFrom: {checkpoint: DIR}`. Null: it has no such form.
const google::protobuf::FieldDescriptor* TextForm(const google::protobuf::FieldDescriptor* field);

// What is wrong with an empty list of `field`, or null. A message cannot tell it from none, and of
// some fields none is a list with values: a model's layers.
const char* EmptyListProblem(const google::protobuf::FieldDescriptor* field);

// camelCase as in YAML and JSON, or as in the .proto file.
enum class FieldNaming : uint8_t { kJson, kProto };

// What to say of a field that `type` does not have: suggests the nearest name, or where in `root`
// a field of exactly this name lies, or lists the fields.
std::string UnknownField(absl::string_view name, const google::protobuf::Descriptor* type,
                         const google::protobuf::Descriptor* root,
                         FieldNaming naming = FieldNaming::kJson);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_YAML_MESSAGE_H_
