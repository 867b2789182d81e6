#include "worker/data/formats/numbered_columns.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "proto/job/fields/field_plan.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/fields/task_spec.h"
#include "worker/data/formats/number_text.h"

namespace strata {

void NumberColumns(const JobSpec& spec, const CsvColumns& columns, DataShape* shape) {
  if (!columns.header) return;
  std::set<std::string> wanted = {spec.sample_weight()};
  for (const TaskSpec& task : TasksOf(spec)) wanted.insert(task.column);
  for (const FieldPlan& field : PlanFields(spec).fields) wanted.insert(field.column);
  for (const std::string& column : wanted) {
    uint64_t number = 0;
    if (ParseUnsigned(column, &number) != NumberError::kNone) continue;
    const absl::StatusOr<size_t> at = columns.Find(column, "");
    if (!at.ok()) continue;  // never: the parser was made of them
    NumberedColumn* numbered = shape->add_numbered_columns();
    numbered->set_number(column);
    numbered->set_name(columns.names[*at]);
  }
}

}  // namespace strata
