// The columns of csv that a job gives as numbers.
// Tested by tests/worker/data/index/index_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_NUMBERED_COLUMNS_H_
#define STRATA_WORKER_DATA_FORMATS_NUMBERED_COLUMNS_H_

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/csv_columns.h"

namespace strata {

// Says in shape->numbered_columns what the header of `columns`, which has all columns of the job,
// calls those that labels, the weight and fields give as numbers. Nothing without a header.
void NumberColumns(const JobSpec& spec, const CsvColumns& columns, DataShape* shape);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_NUMBERED_COLUMNS_H_
