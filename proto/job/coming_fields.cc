#include "proto/job/coming_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/job/spec_checks.h"

namespace strata::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr absl::string_view kComing[] = {
    "spec.model.experts",
    "spec.model.expertHidden",
    "spec.model.attentionHidden",
};

absl::Status Check(const Message& message, const std::string& path) {
  std::vector<const FieldDescriptor*> given;
  message.GetReflection()->ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    const std::string here = absl::StrCat(path, path.empty() ? "" : ".", field->json_name());
    if (IsComing(here)) return Bad(here, "is not available in this version; remove it");
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const google::protobuf::Reflection& in = *message.GetReflection();
    if (!field->is_repeated()) STRATA_RETURN_IF_BAD(Check(in.GetMessage(message, field), here));
    for (int i = 0; field->is_repeated() && i < in.FieldSize(message, field); ++i) {
      STRATA_RETURN_IF_BAD(Check(in.GetRepeatedMessage(message, field, i), here));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsComing(absl::string_view path) {
  return std::find(std::begin(kComing), std::end(kComing), path) != std::end(kComing);
}

absl::Status CheckComing(const TrainingJob& job) { return Check(job, ""); }

}  // namespace strata::spec
