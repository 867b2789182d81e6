// libffm lines: "label field:feature:value field:feature:value ...".
// Tested by tests/worker/data/formats/formats_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_LIBFFM_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_LIBFFM_PARSER_H_

#include <cstdint>
#include <memory>

#include "worker/data/formats/line_parser.h"

namespace strata {

// Fields are numbered from 0 and have one input of the model each, so a wild number is an error and
// not a huge model.
inline constexpr uint32_t kMaxLibffmFields = 65536;

// As libsvm_parser.h, with a field before each feature: the feature, up to 2^64 - 1, is the key
// itself. The features of an example come in the order of their fields, those of one field in the
// line's. A field from `fields` on makes a line bad: the model's shape is fixed by the train files.
std::unique_ptr<LineParser> MakeLibffmParser(uint32_t fields, Labels labels = Labels::kRequired);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_LIBFFM_PARSER_H_
