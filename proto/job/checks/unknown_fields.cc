#include "proto/job/checks/unknown_fields.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"

namespace strata {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string UnknownIn(const Message& message, const std::string& path) {
  const auto* const reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  if (!unknown.empty()) {
    return absl::StrCat("field ", unknown.field(0).number(), path.empty() ? "" : " of ", path);
  }
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string name = absl::StrCat(path, path.empty() ? "" : ".", field->json_name());
    const int size = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      std::string found = field->is_repeated()
                              ? UnknownIn(reflection->GetRepeatedMessage(message, field, i),
                                          absl::StrCat(name, "[", i, "]"))
                              : UnknownIn(reflection->GetMessage(message, field), name);
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace

std::string UnknownField(const Message& message) { return UnknownIn(message, ""); }

absl::Status CheckKnown(const Message& message, absl::string_view reader,
                        absl::string_view writer) {
  const std::string unknown = UnknownField(message);
  if (unknown.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(reader, " is older than ", writer, ": it does not know ", unknown,
                   "; run the version of strata there that knows it, or leave out of the job what "
                   "is new in it"));
}

}  // namespace strata
