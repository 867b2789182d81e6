// The whole table of one mode, for a test of its own.
#ifndef STRATA_TESTS_FAULTS_MATRIX_KILL_MATRIX_H_
#define STRATA_TESTS_FAULTS_MATRIX_KILL_MATRIX_H_

#include "tests/faults/matrix/fault_matrix.h"

namespace strata::testing {

// Strikes a cluster in every scene of the mode until each cell has each blow, and there were enough
// of them; prints the table. Fails the test where a job is lost or wrong.
void FillMatrix(Mode mode);
// The same of jobs with copies of their shards, in the phases that these have more.
void FillCopiesMatrix(Mode mode);
// Sets the clock of one process after the other, in kClockPhases. Needs libfaketime.
void FillClockMatrix(Mode mode);

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_KILL_MATRIX_H_
