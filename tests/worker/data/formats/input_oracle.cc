#include "tests/worker/data/formats/input_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/decompressor.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/csv_parser.h"
#include "worker/data/formats/libffm_parser.h"
#include "worker/data/formats/libsvm_parser.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"

namespace strata::testing {
namespace {

constexpr uint32_t kFields = 5;  // of libsvm and libffm
constexpr char kCsvHeader[] = "id,y,a,b,tags,genres";

std::string CriteoCsvHeader() {
  std::string header = "Id,Label";
  for (int i = 1; i <= 13; ++i) absl::StrAppend(&header, ",I", i);
  for (int c = 1; c <= 26; ++c) absl::StrAppend(&header, ",C", c);
  return header;
}

ColumnsSpec CsvColumns(bool multi_valued) {
  ColumnsSpec columns;
  columns.set_label("y");
  columns.add_numeric("a");
  columns.add_categorical("b");
  columns.add_ignored("id");
  if (multi_valued) {
    columns.add_multi_valued()->set_column("tags");
    columns.add_multi_valued()->set_column("genres");
    columns.mutable_multi_valued(1)->set_pooling("mean");
  } else {
    columns.add_categorical("tags");
    columns.add_categorical("genres");
  }
  return columns;
}

JobSpec CsvJob(bool multi_valued) {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  *spec.mutable_data()->mutable_columns() = CsvColumns(multi_valued);
  return spec;
}

template <typename T>
std::unique_ptr<LineParser> Take(T parser) {
  if (!parser.ok()) std::abort();
  return *std::move(parser);
}

std::unique_ptr<LineParser> MakeParser(LineFormat format) {
  switch (format) {
    case LineFormat::kCriteo:
      return MakeCriteoParser(IntegerFeatures::kDense, 0);
    case LineFormat::kCriteoBucket:
      return MakeCriteoParser(IntegerFeatures::kBucket, 0);
    case LineFormat::kCriteoCsv:
      return Take(MakeCriteoCsvParser(CriteoCsvHeader(), IntegerFeatures::kDense, 0));
    case LineFormat::kLibsvm:
      return MakeLibsvmParser(kFields);
    case LineFormat::kLibffm:
      return MakeLibffmParser(kFields);
    case LineFormat::kCsv:
      return Take(MakeCsvParser(CsvJob(false), kCsvHeader));
    case LineFormat::kCsvMultiValued:
      return Take(MakeCsvParser(CsvJob(true), kCsvHeader));
  }
  std::abort();
}

const LineParser& ParserOf(LineFormat format) {
  static const auto* const parsers = [] {
    auto* made = new std::vector<std::unique_ptr<LineParser>>;
    for (int f = 0; f < kLineFormats; ++f) made->push_back(MakeParser(LineFormat(f)));
    return made;
  }();
  return *(*parsers)[static_cast<size_t>(format)];
}

bool Equal(const Batch& a, const Batch& b) {
  return a.size == b.size && a.labels == b.labels && a.dense == b.dense && a.offsets == b.offsets &&
         a.keys == b.keys && a.values == b.values && a.fields == b.fields;
}

bool Finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// Of a batch of one example, before Finish.
std::string WrongWith(const Batch& batch, LineFormat format) {
  const size_t features = batch.keys.size();
  if (batch.size != 1 || batch.labels.size() != 1) return "not one example";
  if (batch.labels[0] != 0.0f && batch.labels[0] != 1.0f) return "a label that is neither 0 nor 1";
  if (batch.dense.size() != batch.numeric) return "another count of numbers than announced";
  if (batch.offsets != std::vector<uint32_t>{0, static_cast<uint32_t>(features)}) {
    return "offsets that do not fit the keys";
  }
  if (!batch.values.empty() && batch.values.size() != features) return "values do not fit the keys";
  if (!batch.fields.empty() && batch.fields.size() != features) return "fields do not fit the keys";
  if (!Finite(batch.dense) || !Finite(batch.values)) return "a number that is not finite";
  if (!std::is_sorted(batch.fields.begin(), batch.fields.end())) return "fields out of order";
  const uint32_t fields = format == LineFormat::kLibffm ? kFields : 3;
  if (!batch.fields.empty() && batch.fields.back() >= fields) return "a field past the last";
  return "";
}

std::string WrongWithPair(const LineParser& parser, absl::string_view line, const Batch& one) {
  Batch two;
  parser.Start(&two);
  LineError error;
  for (int i = 0; i < 2; ++i) {
    if (parser.Parse(line, &two, &error) != LineOutcome::kExample) return "another outcome later";
  }
  const size_t n = one.keys.size();
  const auto twice = [](const auto& both, const auto& single) {
    return both.size() == 2 * single.size() &&
           std::equal(single.begin(), single.end(), both.begin()) &&
           std::equal(single.begin(), single.end(), both.begin() + single.size());
  };
  if (two.size != 2 || two.offsets.back() != 2 * n || !twice(two.keys, one.keys) ||
      !twice(two.values, one.values) || !twice(two.fields, one.fields) ||
      !twice(two.labels, one.labels)) {
    return "two examples are not twice the one";
  }
  return "";
}

}  // namespace

std::string GoodLine(LineFormat format) {
  std::string line;
  switch (format) {
    case LineFormat::kCriteo:
    case LineFormat::kCriteoBucket:
      line = "1\t1\t-2\t\t3\t1382\t4\t15\t2\t181\t1\t2\t\t9223372036854775807";
      for (int f = 0; f < 26; ++f) absl::StrAppend(&line, f == 21 ? "\t" : "\tc", f);
      return line;
    case LineFormat::kCriteoCsv:
      line = "7,1,1,-2,,3,1382,4.0,\"15\",2,181,1,2,,9";
      for (int f = 0; f < 26; ++f) absl::StrAppend(&line, f == 21 ? ",\"a,\"\"b\"" : ",c");
      return line;
    case LineFormat::kLibsvm:
      return "1 5:1 6:2.5 7:1e3 # x";
    case LineFormat::kLibffm:
      return "1 2:5:1 0:6:2.5 2:7:1e3 4:8:1 # x";
    case LineFormat::kCsv:
    case LineFormat::kCsvMultiValued:
      return "9,1,2.5,\"a\"\"b\",c|d||e,\"f|g\"";
  }
  return line;
}

LineVerdict JudgeLine(LineFormat format, absl::string_view line) {
  const LineParser& parser = ParserOf(format);
  // An exact copy, so that a read past the end is seen by a sanitizer.
  const std::vector<char> exact(line.begin(), line.end());
  line = absl::string_view(exact.data(), exact.size());
  Batch batch, empty;
  parser.Start(&batch);
  parser.Start(&empty);
  LineError error;
  LineVerdict verdict;
  switch (parser.Parse(line, &batch, &error)) {
    case LineOutcome::kExample:
      verdict.example = true;
      verdict.complaint = WrongWith(batch, format);
      if (verdict.complaint.empty()) verdict.complaint = WrongWithPair(parser, line, batch);
      break;
    case LineOutcome::kBlank:
      if (!Equal(batch, empty)) verdict.complaint = "a blank line changed the batch";
      break;
    case LineOutcome::kBad:
      verdict.bad = true;
      if (!Equal(batch, empty)) verdict.complaint = "a bad line changed the batch";
      if (error.reason.empty()) verdict.complaint = "a bad line without a reason";
      if (error.column < 1 || error.column > line.size() + 1) {
        verdict.complaint = absl::StrCat("column ", error.column, " of ", line.size());
      }
  }
  return verdict;
}

std::string JudgeCompressed(absl::string_view file) {
  constexpr size_t kMostText = size_t{8} << 20;  // a small file can be very much text
  const Compression kind = CompressionOf(file);
  if (kind == Compression::kNone) return "";
  std::string texts[2];
  absl::Status outcomes[2];
  for (int pieces = 0; pieces < 2; ++pieces) {
    const auto decompressor = Decompressor::Make(kind, "f");
    const auto sink = [&](absl::string_view text) -> absl::Status {
      texts[pieces].append(text.data(), text.size());
      return texts[pieces].size() > kMostText ? absl::ResourceExhaustedError("much")
                                              : absl::OkStatus();
    };
    absl::Status& status = outcomes[pieces];
    for (size_t at = 0, n = 1; status.ok() && at < file.size(); at += n) {
      n = pieces == 0 ? file.size() : 1 + at % 13;
      status = decompressor->Push(file.substr(at, n), sink);
    }
    if (status.ok()) status = decompressor->Finish();
  }
  if (absl::IsResourceExhausted(outcomes[0]) || absl::IsResourceExhausted(outcomes[1])) return "";
  // Which byte of a damaged zstd frame is told depends on the pieces.
  if (outcomes[0].code() != outcomes[1].code()) {
    return absl::StrCat("whole: ", outcomes[0].ToString(), ", in pieces: ", outcomes[1].ToString());
  }
  return outcomes[0].ok() && texts[0] != texts[1] ? "another text in pieces" : "";
}

}  // namespace strata::testing
