#include "ops/cuda/products/blas.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/cuda/products/blas_search.h"
#include "ops/cuda/products/split_blas.h"

namespace strata::ops::gpu {
namespace {

// The functions of the library that are called.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
};

template <typename Function>
bool Find(void* handle, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(handle, name));
  return *out != nullptr;
}

bool FindAll(void* handle, Library* l) {
  return Find(handle, "cublasLtCreate", &l->create) &&
         Find(handle, "cublasLtDestroy", &l->destroy) &&
         Find(handle, "cublasLtGetVersion", &l->version) &&
         Find(handle, "cublasLtMatmul", &l->matmul) &&
         Find(handle, "cublasLtMatmulDescCreate", &l->desc_create) &&
         Find(handle, "cublasLtMatmulDescDestroy", &l->desc_destroy) &&
         Find(handle, "cublasLtMatmulDescSetAttribute", &l->desc_set) &&
         Find(handle, "cublasLtMatrixLayoutCreate", &l->layout_create) &&
         Find(handle, "cublasLtMatrixLayoutDestroy", &l->layout_destroy) &&
         Find(handle, "cublasLtMatmulPreferenceCreate", &l->preference_create) &&
         Find(handle, "cublasLtMatmulPreferenceDestroy", &l->preference_destroy) &&
         Find(handle, "cublasLtMatmulPreferenceSetAttribute", &l->preference_set) &&
         Find(handle, "cublasLtMatmulAlgoGetHeuristic", &l->heuristic);
}

absl::Status StatusOf(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(call, ": cuBLASLt status ", static_cast<int>(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    return absl::InvalidArgumentError(message);
  }
  return absl::InternalError(message);
}

cublasLtEpilogue_t EpilogueOf(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case MatmulEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case MatmulEpilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case MatmulEpilogue::kBiasReluMask:
      return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    case MatmulEpilogue::kReluGradient:
      return CUBLASLT_EPILOGUE_DRELU;
    case MatmulEpilogue::kReluGradientBias:
      return CUBLASLT_EPILOGUE_DRELU_BGRAD;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool UsesMask(MatmulEpilogue epilogue) { return epilogue >= MatmulEpilogue::kBiasReluMask; }

// What is the same for every product of a shape.
struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

class BlasImpl : public Blas {
 public:
  BlasImpl(CudaApi* api, const Library& library, cublasLtHandle_t handle, std::string path,
           Buffer workspace)
      : api_(api),
        library_(library),
        handle_(handle),
        path_(std::move(path)),
        workspace_(std::move(workspace)) {
    const size_t version = library.version();  // 130002
    version_ = absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
  }
  ~BlasImpl() override {
    for (auto& [shape, plan] : plans_) Destroy(plan);
    (void)library_.destroy(handle_);
  }

  const std::string& path() const override { return path_; }
  const std::string& version() const override { return version_; }

  absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                        StreamHandle stream) override {
    return api_->CallLibrary("product", [&] { return Give(shape, operands, stream); });
  }

 private:
  absl::Status Give(const MatmulShape& shape, const MatmulOperands& operands, StreamHandle stream) {
    auto found = plans_.find(shape);
    if (found == plans_.end()) {
      Plan plan;
      absl::Status status = MakePlan(shape, operands, &plan);
      if (!status.ok()) {
        Destroy(plan);
        return status;
      }
      found = plans_.emplace(shape, plan).first;
    }
    const Plan& plan = found->second;
    absl::Status status = SetPointers(shape, operands, plan.product);
    if (!status.ok()) return status;
    const float one = 1.0f, beta = shape.add ? 1.0f : 0.0f;
    // The library's matrices are column-major: C^T = B^T A^T, so the factors change places.
    return StatusOf(library_.matmul(handle_, plan.product, &one, operands.b, plan.b, operands.a,
                                    plan.a, &beta, operands.c, plan.c, operands.c, plan.c,
                                    &plan.algorithm, workspace_.as<void>(), workspace_.bytes(),
                                    reinterpret_cast<cudaStream_t>(stream)),
                    "cublasLtMatmul");
  }

  template <typename Value>
  absl::Status Set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                   const Value& value) {
    return StatusOf(library_.desc_set(product, attribute, &value, sizeof value),
                    "cublasLtMatmulDescSetAttribute");
  }

  absl::Status SetPointers(const MatmulShape& shape, const MatmulOperands& operands,
                           cublasLtMatmulDesc_t product) {
    absl::Status status;
    if (shape.epilogue != MatmulEpilogue::kNone &&
        shape.epilogue != MatmulEpilogue::kReluGradient) {
      status = Set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    if (status.ok() && UsesMask(shape.epilogue)) {
      status = Set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.mask);
    }
    return status;
  }

  // A row-major matrix (rows, columns) is a column-major one (columns, rows).
  absl::Status MakeLayout(cudaDataType_t type, uint32_t rows, uint32_t columns, uint32_t stride,
                          cublasLtMatrixLayout_t* out) {
    return StatusOf(library_.layout_create(out, type, columns, rows, stride),
                    "cublasLtMatrixLayoutCreate");
  }

  absl::Status MakePlan(const MatmulShape& s, const MatmulOperands& operands, Plan* plan) {
    const cublasComputeType_t compute =
        s.precision == MatmulPrecision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cudaDataType_t in = s.precision == MatmulPrecision::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
    const cudaDataType_t out = s.bf16_out ? CUDA_R_16BF : CUDA_R_32F;
    const cublasOperation_t op_a = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    absl::Status status = StatusOf(library_.desc_create(&plan->product, compute, CUDA_R_32F),
                                   "cublasLtMatmulDescCreate");
    if (status.ok()) status = Set(plan->product, CUBLASLT_MATMUL_DESC_TRANSA, op_b);
    if (status.ok()) status = Set(plan->product, CUBLASLT_MATMUL_DESC_TRANSB, op_a);
    if (status.ok()) {
      status = Set(plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(s.epilogue));
    }
    if (status.ok() && UsesMask(s.epilogue)) {
      status = Set(plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                   static_cast<int64_t>(s.mask_stride));
    }
    if (status.ok()) status = SetPointers(s, operands, plan->product);
    if (status.ok()) {
      status = s.transpose_a ? MakeLayout(in, s.k, s.m, s.lda, &plan->a)
                             : MakeLayout(in, s.m, s.k, s.lda, &plan->a);
    }
    if (status.ok()) {
      status = s.transpose_b ? MakeLayout(in, s.n, s.k, s.ldb, &plan->b)
                             : MakeLayout(in, s.k, s.n, s.ldb, &plan->b);
    }
    if (status.ok()) status = MakeLayout(out, s.m, s.n, s.ldc, &plan->c);
    return status.ok() ? ChooseAlgorithm(s, plan) : status;
  }

  template <typename Value>
  absl::Status Prefer(cublasLtMatmulPreference_t preference,
                      cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    return StatusOf(library_.preference_set(preference, attribute, &value, sizeof value),
                    "cublasLtMatmulPreferenceSetAttribute");
  }

  absl::Status ChooseAlgorithm(const MatmulShape& s, Plan* plan) {
    cublasLtMatmulPreference_t preference = nullptr;
    absl::Status status =
        StatusOf(library_.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    if (!status.ok()) return status;
    const size_t bytes = workspace_.bytes();
    status = Prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
    // A shape's later operands need not lie as well as its first.
    for (const cublasLtMatmulPreferenceAttributes_t alignment :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (status.ok()) status = Prefer(preference, alignment, uint32_t{16});
    }
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    if (status.ok()) {
      status = StatusOf(library_.heuristic(handle_, plan->product, plan->b, plan->a, plan->c,
                                           plan->c, preference, 1, &result, &found),
                        "cublasLtMatmulAlgoGetHeuristic");
    }
    (void)library_.preference_destroy(preference);
    if (!status.ok()) return status;
    if (found == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cuBLASLt has no product for m ", s.m, ", n ", s.n, ", k ", s.k));
    }
    plan->algorithm = result.algo;
    return absl::OkStatus();
  }

  void Destroy(const Plan& plan) {
    for (cublasLtMatrixLayout_t layout : {plan.a, plan.b, plan.c}) {
      if (layout != nullptr) (void)library_.layout_destroy(layout);
    }
    if (plan.product != nullptr) (void)library_.desc_destroy(plan.product);
  }

  CudaApi* const api_;
  const Library library_;
  const cublasLtHandle_t handle_;
  const std::string path_;
  std::string version_;
  const Buffer workspace_;
  std::map<MatmulShape, Plan> plans_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Open(Arena* arena, const Options& options) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> tried;
  for (const std::string& candidate :
       BlasCandidates(options.library, "", path == nullptr ? "" : path)) {
    // Stays loaded: the library has state of its own for each device.
    void* const loaded = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
      const char* why = dlerror();
      tried.push_back(absl::StrCat(candidate, " (", why == nullptr ? "?" : why, ")"));
      continue;
    }
    Library library;
    if (!FindAll(loaded, &library)) {
      tried.push_back(absl::StrCat(candidate, " (lacks functions of cuBLASLt 13)"));
      continue;
    }
    auto workspace = arena->Allocate(options.workspace_bytes);
    if (!workspace.ok()) return workspace.status();
    cublasLtHandle_t handle = nullptr;
    absl::Status status = StatusOf(library.create(&handle), candidate.c_str());
    if (!status.ok()) return status;
    Dl_info where = {};
    const bool known = dladdr(reinterpret_cast<void*>(library.create), &where) != 0;
    return MakeSplitBlas(arena, std::make_unique<BlasImpl>(arena->api(), library, handle,
                                                           known ? where.dli_fname : candidate,
                                                           *std::move(workspace)));
  }
  return absl::NotFoundError(
      absl::StrCat("cuBLASLt was not found; tried ", absl::StrJoin(tried, "; ")));
}

}  // namespace strata::ops::gpu
