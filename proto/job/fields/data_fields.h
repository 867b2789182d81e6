// The fields of a job, or those that spec.data alone says, in the form of spec.fields.
#ifndef STRATA_PROTO_JOB_FIELDS_DATA_FIELDS_H_
#define STRATA_PROTO_JOB_FIELDS_DATA_FIELDS_H_

#include <cstdint>

#include "proto/strata/job.pb.h"

namespace strata::spec {

using FieldConfigs = google::protobuf::RepeatedPtrField<FieldConfig>;

// Of a job, in either form, and of a line of libffm.
inline constexpr uint32_t kMostFields = 1u << 16;

// `data` has its defaults resolved. Criteo and criteo_csv: C1 .. C26, then I1 .. I13 as numbers, or
// with buckets as categories. Csv: columns.numeric, columns.categorical, columns.multi_valued,
// under names that spec.fields allows. Libfm and libsvm: one field, `features`, whose values have
// weights and are not pooled. Libffm: so many fields, named by their numbers.
FieldConfigs FieldsOfData(const DataSpec& data, uint32_t libffm_fields);

// The one of libffm with that number.
FieldConfig LibffmField(uint32_t number);

// All fields that a job's examples have: spec.fields of csv, else those of its data, which have the
// names and tables that spec.fields gives their columns. Defaults are resolved.
FieldConfigs FieldsOfJob(const JobSpec& job, uint32_t libffm_fields);

// Whether keys hash the name of a field's table, so that its fields share rows by value: csv's of
// spec.fields do where there is spec.tables. Csv's keys of all other jobs hash the name of the
// column.
bool KeysHashTable(const JobSpec& job);

}  // namespace strata::spec

#endif  // STRATA_PROTO_JOB_FIELDS_DATA_FIELDS_H_
