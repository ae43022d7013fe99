/* Products of matrices by cuBLASLt, where a call's operands are matrices as it has them and it is there: else tiles multiply them. */
#ifndef OPC_CUDA_LIBRARY_H
#define OPC_CUDA_LIBRARY_H

#include "opc/cuda/call.h"
#include "opc/cuda/cublaslt.h"

/* The environment variable that says which products the library makes: `off` for none, `all` for those of any size too. It is read by each
 * call. */
#define OPC_CUBLASLT "OPC_CUBLASLT"

namespace opc {

/* A factor of a product, or what it makes, whose elements lie in steps along the number of a matrix, points and terms. */
struct product_operand {
  const void *data;
  dtype type;
  axes_in_steps batches, points, terms;
};

/* made[batch, down, across] = sum[term](left[batch, down, term] * right[batch, across, term]) + bias[across], if there is a bias. */
struct plain_product {
  int64_t batches, down, across, terms;
  product_operand left, right, made; /* which has points down, and across in the place of terms */
  const void *bias;
  dtype bias_type;
  int64_t bias_step;
};

/* Fewer products than these, 512 x 256 x 256, take a GPU less time than to be started: what the host does counts, and tiles take it less. */
enum : int64_t { least_products_of_library = 1 << 25 };

/* What NVIDIA tells to give the library for its fastest algorithms on sm_90, of which a call gets as much as its algorithm needs; and the
 * most matrices of a call. */
enum : int64_t { most_library_workspace = 32 << 20, most_batches = 65535 };

/* A matrix of the library, columns of `leading` elements, of which it takes the transpose where that is asked for. */
struct library_matrix {
  int64_t rows, columns, leading, batch_step;
  int32_t operation;

  /* The library takes numbers of 32 bits, and columns that do not overlap. */
  bool is_in_bounds() const { return rows <= INT32_MAX && columns <= INT32_MAX && leading <= INT32_MAX && leading >= rows && batch_step >= 0; }
};

/* All that the library's answer depends on: with the same numbers it is the same. */
struct library_key {
  int64_t of[13];
  uint64_t hash() const {
    uint64_t found = 0;
    for (int64_t word : of) found = (found ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15ull, found ^= found >> 29;
    return found;
  }
};

/* A product as the library is called: d = a b, column by column, which is the target row by row. */
struct library_call {
  library_matrix a, b, d;
  const void *from_a, *from_b, *bias;
  void *to;
  int32_t factors, made; /* cudaDataType */
  int64_t batches;
  bool has_workspace;

  bool describe(const plain_product &p);
  library_key key() const {
    const int64_t kinds = a.operation | b.operation << 1 | (bias != nullptr) << 2 | has_workspace << 3 | factors << 4 | made << 12;
    const int64_t aligned = alignment(from_a) | alignment(from_b) << 16 | alignment(to) << 32 | alignment(bias) << 48;
    return {{a.rows, a.columns, a.leading, a.batch_step, b.rows, b.columns, b.leading, b.batch_step, d.leading, d.batch_step, batches, kinds,
             aligned}};
  }
  /* The bytes of which an address is a multiple, as far as that makes a difference. */
  static int64_t alignment(const void *place) {
    const uint64_t number = reinterpret_cast<uintptr_t>(place) | 256;
    return static_cast<int64_t>(number & (~number + 1));
  }
};

/* The data type of the library's that elements have; -1 where it has none that tiles have too. */
static inline int32_t library_type(dtype type) {
  return type == dtype_float32    ? int32_t(cublaslt::real_32f)
         : type == dtype_float64  ? int32_t(cublaslt::real_64f)
         : type == dtype_float16  ? int32_t(cublaslt::real_16f)
         : type == dtype_bfloat16 ? int32_t(cublaslt::real_16bf)
                                  : -1;
}

/* Describes what has some rows and columns as a matrix or a transposed one; false where it is neither. */
static inline bool as_matrix(library_matrix &m, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step, int64_t batch_step) {
  const bool by_rows = row_step == 1 && rows > 1, by_columns = column_step == 1 && columns > 1;
  if (by_rows || (!by_columns && rows == 1)) {
    m = {rows, columns, columns == 1 ? rows : column_step, batch_step, cublaslt::as_stored};
  } else if (by_columns || columns == 1) {
    m = {columns, rows, rows == 1 ? columns : row_step, batch_step, cublaslt::transposed};
  } else {
    return false;
  }
  return m.is_in_bounds();
}
static inline bool as_target(library_matrix &m, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step, int64_t batch_step) {
  m = {rows, columns, columns == 1 ? rows : column_step, batch_step, cublaslt::as_stored};
  return (rows == 1 || row_step == 1) && m.is_in_bounds();
}

inline bool library_call::describe(const plain_product &p) {
  const product_operand &left = p.left, &right = p.right, &target = p.made;
  for (const product_operand *o : {&left, &right, &target}) {
    if (o->data == nullptr || !o->points.are_one || !o->terms.are_one) return false;
  }
  factors = library_type(left.type);
  made = library_type(target.type);
  /* Sums of 16 bits may be kept in 32. */
  const bool halves = factors == cublaslt::real_16f || factors == cublaslt::real_16bf;
  if (factors < 0 || left.type != right.type || !(made == factors || (halves && made == cublaslt::real_32f))) return false;
  if (p.bias != nullptr && (p.bias_type != target.type || (p.bias_step != 1 && p.across > 1))) return false;
  from_a = right.data;
  from_b = left.data;
  to = const_cast<void *>(target.data);
  bias = p.bias;
  batches = p.batches;
  int64_t down = p.down;
  axes_in_steps left_points = left.points, target_points = target.points;
  if (batches > 1 && right.batches.are_one && right.batches.step == 0) {
    /* Batches that share a factor are one matrix with all their points, where these follow each other. */
    axes_in_steps all_left = left.batches, all_target = target.batches;
    all_left.add(down, left.points.step);
    all_target.add(down, target.points.step);
    if (all_left.are_one && all_target.are_one) {
      left_points = all_left;
      target_points = all_target;
      down *= batches;
      batches = 1;
    }
  }
  int64_t steps[3] = {0, 0, 0};
  if (batches > 1) {
    if (!left.batches.are_one || !right.batches.are_one || !target.batches.are_one || batches > most_batches) return false;
    steps[0] = right.batches.step, steps[1] = left.batches.step, steps[2] = target.batches.step;
  }
  return as_matrix(a, p.across, right.points.step, p.terms, right.terms.step, steps[0]) &&
         as_matrix(b, p.terms, left.terms.step, down, left_points.step, steps[1]) &&
         as_target(d, p.across, target.terms.step, down, target_points.step, steps[2]);
}

/* What the library has said of products of one kind: how it makes them, or that it does not. */
struct library_plan {
  library_key key;
  void *operation, *a, *b, *d;
  cublaslt::algorithm own;
  size_t workspace;
  int64_t last_used;
  int32_t users; /* calls under way */
  bool known, works;

  void forget(const cublaslt::functions &f) {
    if (operation != nullptr) f.MatmulDescDestroy(operation);
    for (void *layout : {a, b, d}) {
      if (layout != nullptr) f.MatrixLayoutDestroy(layout);
    }
    *this = library_plan{};
  }

  /* Asks how the library makes products like this one, of which `handle` is the device's. */
  void ask(const cublaslt::functions &f, void *handle, const library_call &c, const library_key &of) {
    using namespace cublaslt;
    key = of;
    known = true;
    const bool wide = c.factors == real_64f;
    const uint32_t epilogue = c.bias != nullptr ? epilogue_bias : epilogue_none, reduction = reduction_in_compute_type;
    /* Products of 16 bits are added up in 32, in parts too; those of 32 are not rounded to tf32. */
    bool right = f.MatmulDescCreate(&operation, wide ? compute_64f : compute_32f, wide ? real_64f : real_32f) == succeeded &&
                 f.MatmulDescSetAttribute(operation, matmul_transpose_a, &c.a.operation, 4) == succeeded &&
                 f.MatmulDescSetAttribute(operation, matmul_transpose_b, &c.b.operation, 4) == succeeded &&
                 f.MatmulDescSetAttribute(operation, matmul_epilogue, &epilogue, 4) == succeeded &&
                 (c.bias == nullptr || f.MatmulDescSetAttribute(operation, matmul_bias, &c.bias, sizeof c.bias) == succeeded) &&
                 layout(f, a, c.a, c.factors, c.batches) && layout(f, b, c.b, c.factors, c.batches) && layout(f, d, c.d, c.made, c.batches);
    void *preference = nullptr;
    right = right && f.MatmulPreferenceCreate(&preference) == succeeded;
    const uint64_t most = c.has_workspace ? uint64_t(most_library_workspace) : 0;
    const uint32_t aligned[4] = {alignment(c.from_a), alignment(c.from_b), alignment(c.to), alignment(c.to)};
    right = right && f.MatmulPreferenceSetAttribute(preference, prefer_workspace, &most, 8) == succeeded &&
            f.MatmulPreferenceSetAttribute(preference, prefer_reduction, &reduction, 4) == succeeded;
    for (int32_t i = 0; i < 4; ++i) {
      right = right && f.MatmulPreferenceSetAttribute(preference, prefer_alignment_a + i, &aligned[i], 4) == succeeded;
    }
    found_algorithm found[4];
    int32_t count = 0;
    right = right && f.MatmulAlgoGetHeuristic(handle, operation, a, b, d, d, preference, 4, found, &count) == succeeded;
    for (int32_t i = 0; right && !works && i < count; ++i) {
      if (found[i].state != succeeded || found[i].workspace > most) continue;
      own = found[i].own;
      workspace = found[i].workspace;
      works = true;
    }
    if (preference != nullptr) f.MatmulPreferenceDestroy(preference);
  }

 private:
  static uint32_t alignment(const void *place) { return static_cast<uint32_t>(library_call::alignment(place)); }
  static bool layout(const cublaslt::functions &f, void *&to, const library_matrix &m, int32_t type, int64_t batches) {
    const int32_t count = static_cast<int32_t>(batches);
    return f.MatrixLayoutCreate(&to, type, static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.columns), m.leading) ==
               cublaslt::succeeded &&
           f.MatrixLayoutSetAttribute(to, cublaslt::layout_batches, &count, 4) == cublaslt::succeeded &&
           f.MatrixLayoutSetAttribute(to, cublaslt::layout_batch_step, &m.batch_step, 8) == cublaslt::succeeded;
  }
};

/* The library's handle for a device, and its last answers. */
struct library_device {
  enum : int32_t { sets = 32, ways = 4 };
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  void *handle = nullptr;
  bool fails = false;
  int64_t calls = 0;
  library_plan plans[sets * ways] = {};

  /* The answer of a key; it is asked for where it is not known. NULL where all places for it are taken by calls under way. */
  library_plan *plan_of(const cublaslt::functions &f, const library_call &c, const library_key &key) {
    library_plan *const set = plans + key.hash() % sets * ways, *oldest = nullptr;
    ++calls;
    for (library_plan *p = set; p < set + ways; ++p) {
      if (p->known && memcmp(&p->key, &key, sizeof key) == 0) return p->last_used = calls, p;
      if (p->users == 0 && (oldest == nullptr || p->last_used < oldest->last_used)) oldest = p;
    }
    if (oldest == nullptr) return nullptr;
    oldest->forget(f);
    oldest->ask(f, handle, c, key);
    oldest->last_used = calls;
    return oldest;
  }
};

/* What a thread needs to call the library: a context, which one that has called nothing of CUDA's lacks; and to be let do what the capture
 * of a CUDA graph forbids, for the library loads its kernels when it first needs them, which is not captured. */
struct library_guard {
#if defined(__CUDACC__)
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  explicit library_guard(const opc_cuda_context *lent) {
    static thread_local int32_t ready = -1;
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (ready != lent->device) cudaFree(nullptr);
    ready = lent->device;
  }
  ~library_guard() { cudaThreadExchangeStreamCaptureMode(&mode); }
#else
  explicit library_guard(const opc_cuda_context *) {}
  ~library_guard() {}
#endif
  library_guard(const library_guard &) = delete;
  library_guard &operator=(const library_guard &) = delete;
};

/* How many products the library has made so far in place of tiles; -1 where there is no library. */
static int64_t made_by_library = 0;
static inline int64_t products_by_library() {
  return cublaslt::library() == nullptr ? -1 : __atomic_load_n(&made_by_library, __ATOMIC_RELAXED);
}

/* Starts a product on the context's stream. False where the library does not make it, and nothing is started. */
static inline bool start_product(const cublaslt::functions &f, library_device &device, library_call &c, const opc_cuda_context *lent) {
  const library_key key = c.key();
  const library_guard guard(lent);
  pthread_mutex_lock(&device.lock);
  if (device.handle == nullptr && !device.fails) {
    device.fails = f.Create(&device.handle) != cublaslt::succeeded;
  }
  library_plan *const plan = device.fails ? nullptr : device.plan_of(f, c, key);
  const bool works = plan != nullptr && plan->works;
  if (works) ++plan->users;
  pthread_mutex_unlock(&device.lock);
  if (!works) return false;
  /* The host's allocator is not called under the lock: it may wait for a thread that waits for the lock. */
  const int64_t bytes = static_cast<int64_t>(plan->workspace);
  void *const workspace = bytes > 0 ? device_memory(lent, bytes) : nullptr;
  const bool lacks_memory = bytes > 0 && workspace == nullptr;
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = c.factors == cublaslt::real_64f;
  const void *const one = is_wide ? static_cast<const void *>(&wide[0]) : &narrow[0];
  const void *const zero = is_wide ? static_cast<const void *>(&wide[1]) : &narrow[1];
  pthread_mutex_lock(&device.lock);
  if (!lacks_memory) {
    plan->works = (c.bias == nullptr || f.MatmulDescSetAttribute(plan->operation, cublaslt::matmul_bias, &c.bias, sizeof c.bias) == 0) &&
                  f.Matmul(device.handle, plan->operation, one, c.from_a, plan->a, c.from_b, plan->b, zero, c.to, plan->d, c.to, plan->d,
                           &plan->own, workspace, static_cast<size_t>(bytes), lent->stream) == cublaslt::succeeded;
  }
  const bool started = !lacks_memory && plan->works;
  --plan->users;
  pthread_mutex_unlock(&device.lock);
  if (workspace != nullptr && lent->release != nullptr) lent->release(lent->allocator, workspace, bytes, lent->stream);
  if (started) __atomic_fetch_add(&made_by_library, 1, __ATOMIC_RELAXED);
  if (!lacks_memory || !c.has_workspace) return started;
  c.has_workspace = false;
  return start_product(f, device, c, lent);
}

/* Has the library make a product, on the context's stream; false where it does not, and nothing is started. */
static inline bool multiply_by_library(const plain_product &p, const opc_cuda_context *lent) {
  enum : int32_t { most_devices = 64 };
  if (lent == nullptr || p.batches <= 0 || p.down <= 0 || p.across <= 0 || p.terms <= 0) return false;
  const bool many = double(p.batches) * double(p.down) * double(p.across) * double(p.terms) >= double(least_products_of_library);
  if (lent->stream == OPC_CUDA_MEASURE) {
    /* Sizes alone tell, for the call that is measured for may be of a process with another library, or of fewer products. */
    void *const workspace = many ? device_memory(lent, most_library_workspace) : nullptr;
    if (workspace != nullptr && lent->release != nullptr) lent->release(lent->allocator, workspace, most_library_workspace, lent->stream);
    return false;
  }
  const char *const use = getenv(OPC_CUBLASLT);
  if (use != nullptr && strcmp(use, "off") == 0) return false;
  if (lent->device < 0 || lent->device >= most_devices || (!many && (use == nullptr || strcmp(use, "all") != 0))) return false;
  library_call c;
  if (!c.describe(p)) return false;
  c.has_workspace = many;
  const cublaslt::functions *const f = cublaslt::library();
  if (f == nullptr) return false;
  static library_device *devices[most_devices];
  library_device *device = __atomic_load_n(&devices[lent->device], __ATOMIC_ACQUIRE);
  if (device == nullptr) {
    /* They are for the time of the process: a GPU's library may be gone before what is static is. */
    library_device *const made = new library_device();
    const bool first = __atomic_compare_exchange_n(&devices[lent->device], &device, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (first) device = made;
    if (!first) delete made;
  }
  return start_product(*f, *device, c, lent);
}

}  // namespace opc
#endif  // OPC_CUDA_LIBRARY_H
