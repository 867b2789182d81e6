// Fills a protobuf message from protobuf's text format, strictly: what the message does not have is
// an error that names the place and the field that was probably meant.
#ifndef STRATA_TOOLS_CLI_JOB_TEXTPROTO_MESSAGE_H_
#define STRATA_TOOLS_CLI_JOB_TEXTPROTO_MESSAGE_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata {

// Fields go by the names of the .proto file (batch_size). One thread; reads once.
class TextprotoReader {
 public:
  // `name` stands in messages: "job.textproto:7:5: ...".
  explicit TextprotoReader(std::string name) : name_(std::move(name)) {}

  // Replaces what `message` had; it must outlive the reader. What is wrong goes to problems(): what
  // protobuf's parser says of syntax (it stops at the first), unknown fields, numbers that are not
  // finite. A message with a text form (yaml_message.h) may be text: init_from: "DIR".
  void Read(absl::string_view text, google::protobuf::Message* message);

  // Each a line without its end.
  const std::vector<std::string>& problems() const { return problems_; }

  // "name:line:column: " of a field by its camelCase path ("spec.data.train[0]"; lines and columns
  // from 1), "name: " where the file does not have it.
  std::string Where(absl::string_view path) const;

 private:
  class Errors;
  // Text that was put into the parsed one: places behind it in its line are those of the file
  // moved.
  struct Inserted {
    int line = 0;    // from 0
    int column = 0;  // in the file
    int length = 0;
  };
  std::string WithTextForms(absl::string_view text);
  void CheckLists(absl::string_view text);
  int ColumnInFile(int line, int column) const;
  void CheckFinite(const google::protobuf::Message& message, const std::string& path);

  const std::string name_;
  const google::protobuf::Descriptor* type_ = nullptr;
  google::protobuf::TextFormat::ParseInfoTree places_;
  std::vector<std::string> problems_;
  std::vector<Inserted> inserted_;  // in the order of the file
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_TEXTPROTO_MESSAGE_H_
