// libsvm and libfm lines: "label index:value index:value ...".
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_LIBSVM_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_LIBSVM_PARSER_H_

#include <cstdint>
#include <memory>

#include "worker/data/formats/line_parser.h"

namespace strata {

// The label is 1, 0 or -1 (0 and -1 are the negative class). The index, a decimal number up to
// 2^64 - 1, is the key itself: nothing is hashed. Tokens are parted by spaces and tabs; from '#' on
// is comment. A line with no token is blank. A line with more than `max_features` is bad: the
// model's shape is fixed by the train files. Where labels are optional, a line may begin with its
// first feature.
std::unique_ptr<LineParser> MakeLibsvmParser(uint32_t max_features,
                                             Labels labels = Labels::kRequired);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_LIBSVM_PARSER_H_
