// A source that tells when it meets its first bad line.
#ifndef STRATA_WORKER_DATA_READING_NAMED_BAD_LINES_H_
#define STRATA_WORKER_DATA_READING_NAMED_BAD_LINES_H_

#include <functional>
#include <memory>
#include <string>

#include "worker/data/reading/batch_source.h"

namespace strata {

// Reads as `source` does. `tell` is called once, with first_bad_line(), before the batch that lacks
// the line is returned: whoever knows of the batch's bad lines finds it told. Any thread may call
// it.
std::unique_ptr<BatchSource> NameBadLines(std::unique_ptr<BatchSource> source,
                                          std::function<void(const std::string&)> tell);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_NAMED_BAD_LINES_H_
