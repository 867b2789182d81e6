// The vocabulary files that a job's fields name.
#ifndef STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_
#define STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/vocabulary.h"

namespace strata {

struct VocabularyOptions {
  // Of each file, fingerprints of its first so many values are told too, where it has more:
  // ascending.
  std::vector<uint64_t> beginnings = {};
  // Of a checkpoint whose rows the keys are to name: a file must begin with what the checkpoint
  // knows, and what comes behind is out of the vocabulary, as it was when the model was trained.
  VocabularyContents known = {};
  std::string known_by = "the checkpoint";  // what knows them, for messages
  // The option by which a user names another file of a field, as FIELD=FILE; empty: the job file
  // does.
  std::string option = "";
  Cancelled cancelled = nullptr;
};

// Reads each file once, whole. Errors: those of TextFiles::Open and Vocabulary::Parse, with the
// field of the job file; FAILED_PRECONDITION: a file does not begin with what is known. Where
// `index` is given, the files are added to its vocabularies.
absl::StatusOr<Vocabularies> LoadVocabularies(const JobSpec& spec, TextFiles* files,
                                              InputIndex* index = nullptr,
                                              const VocabularyOptions& options = {});

// A status of a file that could not be read, which is called a vocabulary file instead of an input
// file. `remedy`: in place of a look at spec.data.
absl::Status OfVocabulary(const absl::Status& status, absl::string_view remedy);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_VOCABULARIES_H_
