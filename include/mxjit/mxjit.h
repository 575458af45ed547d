/* The C interface of mxjit: C11, and C++. What it does is what the C++ interface (mxjit.hpp) documents; this
 * header says how it is reached.
 *
 * Status: every function that can fail returns one. Where it is not MXJIT_SUCCESS, mxjit_last_message() says
 * why, and nothing was launched or written. No C++ exception leaves the library. Structs: those that may grow
 * begin with struct_size. The MXJIT_..._INIT macros set it and every default. A caller of an older header
 * passes a smaller size: what it lacks has its default. One of a newer header may pass a larger size as long
 * as what this library does not know is zero. Handles: made by this library, destroyed once, by the caller;
 * used from any number of threads at once. Enumerators: int32_t in structs. Any value outside its set is
 * MXJIT_INVALID_ARGUMENT. */
#ifndef MXJIT_MXJIT_H
#define MXJIT_MXJIT_H

#include <stddef.h>
#include <stdint.h>

#include "mxjit/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status */

typedef int32_t mxjit_status;
enum {
  MXJIT_SUCCESS = 0,
  MXJIT_INVALID_ARGUMENT = 1,  /* an argument, a tensor or an option is wrong */
  MXJIT_UNSUPPORTED = 2,       /* valid, and not executed by this version or this device */
  MXJIT_UNAVAILABLE = 3,       /* a needed part is missing here: GPU, driver, NVRTC */
  MXJIT_COMPILE_FAILED = 4,    /* NVRTC refused a generated source */
  MXJIT_COMPILE_FORBIDDEN = 5, /* the kernel is in no cache layer and compilation is forbidden */
  MXJIT_NOT_LOADED = 6,        /* the stream captures and the kernel is not loaded; the capture is intact */
  MXJIT_CONTEXT_LOST = 7,      /* the CUDA context was destroyed or reset, or is of the process forked from */
  MXJIT_DRIVER = 8,            /* a CUDA driver call failed */
  MXJIT_IO = 9,                /* a file could not be read or written */
  MXJIT_INTERNAL = 10,         /* a fault of this library */
  MXJIT_OUT_OF_MEMORY = 11     /* of the host */
};

/* "success", "invalid argument" and so on; "unknown" for another value. Static. */
MXJIT_API const char* mxjit_status_name(mxjit_status status);

/* Of the last call that failed in this thread; MXJIT_SUCCESS and "" before any. A call that succeeds changes
 * nothing. The strings are valid until the next failure in this thread; a message past 8191 bytes is cut. */
MXJIT_API mxjit_status mxjit_last_status(void);
MXJIT_API const char* mxjit_last_message(void);
/* The argument at fault, such as "x" or "options.block", or "" where it is no single one. */
MXJIT_API const char* mxjit_last_argument(void);

/* "major.minor.patch". Static. */
MXJIT_API const char* mxjit_version(void);

/* ---- tensors */

enum { /* mxjit_tensor.dtype */
       MXJIT_BF16 = 0,
       MXJIT_FP16 = 1,
       MXJIT_FP32 = 2,
       MXJIT_FP64 = 3,
       MXJIT_E4M3 = 4, /* FP8 E4M3FN */
       MXJIT_E5M2 = 5,
       MXJIT_E8M0 = 6, /* scale code: 2^(code - 127), 255 is NaN */
       MXJIT_U8 = 7,
       MXJIT_I8 = 8,
       MXJIT_U16 = 9,
       MXJIT_I16 = 10,
       MXJIT_U32 = 11,
       MXJIT_I32 = 12,
       MXJIT_U64 = 13,
       MXJIT_I64 = 14,
       MXJIT_BOOLEAN = 15
};

/* A row-major tensor in device memory. The last extent is contiguous; rows are `pitch` elements apart;
 * leading extents are packed over whole rows. All zero: no tensor. */
typedef struct mxjit_tensor {
  void* data;
  int32_t dtype;
  int32_t rank;
  int64_t shape[4]; /* elements, outermost first; entries past `rank` are ignored */
  int64_t pitch;    /* elements between consecutive rows; 0: shape[rank - 1] */
} mxjit_tensor;
#define MXJIT_NO_TENSOR \
  { NULL, 0, 0, {0, 0, 0, 0}, 0 }

/* ---- vocabulary */

enum { MXJIT_SCALING_MX = 0, MXJIT_SCALING_FP32 = 1 };
enum {
  MXJIT_ROUNDING_RCEIL = 0, /* mx: these four */
  MXJIT_ROUNDING_FLOOR = 1,
  MXJIT_ROUNDING_CEIL = 2,
  MXJIT_ROUNDING_EVEN = 3,
  MXJIT_ROUNDING_NONE = 4, /* fp32: these two */
  MXJIT_ROUNDING_POW2 = 5
};
enum { MXJIT_LAYOUT_PLAIN = 0, MXJIT_LAYOUT_BLOCKED = 1, MXJIT_LAYOUT_MN_MAJOR = 2 };
enum {
  MXJIT_BLOCK_EXTENTS = 0,
  MXJIT_BLOCK_ROW = 1,
  MXJIT_BLOCK_TENSOR = 2,
  MXJIT_BLOCK_K = 3 /* of an operand of a GEMM: a factor for each contraction index */
};
enum { MXJIT_ACCUMULATION_PROMOTE = 0, MXJIT_ACCUMULATION_FAST = 1, MXJIT_ACCUMULATION_EXACT = 2 };
enum {
  MXJIT_PLACEMENT_DENSE = 0,
  MXJIT_PLACEMENT_M_GROUPS = 1,
  MXJIT_PLACEMENT_K_GROUPS = 2,
  MXJIT_PLACEMENT_PER_EXPERT = 3
};
enum { MXJIT_PRE_NONE = 0, MXJIT_PRE_SWIGLU = 1, MXJIT_PRE_SWIGLU_INTERLEAVED = 2, MXJIT_PRE_RMSNORM = 3 };
enum { MXJIT_EPILOGUE_NONE = 0, MXJIT_EPILOGUE_SWIGLU = 1, MXJIT_EPILOGUE_SWIGLU_INTERLEAVED = 2 };
enum { MXJIT_AXIS_ROW = 1, MXJIT_AXIS_COL = 2 }; /* a set: one, the other, or their sum */

/* ---- context */

/* A CUstream (and a cudaStream_t). Null is the legacy default stream. */
struct CUstream_st;
typedef struct CUstream_st* mxjit_stream;

/* A cache of kernels, and what is loaded of it on one CUDA context: the one that is current in the thread
 * that creates it, or the primary context of device 0 where none is. */
typedef struct mxjit_context mxjit_context;
/* A call resolved to a loaded kernel. Immutable; holds what it needs after its mxjit_context is destroyed. */
typedef struct mxjit_plan mxjit_plan;

enum { MXJIT_COMPILE_ENVIRONMENT = 0, MXJIT_COMPILE_ALLOW = 1, MXJIT_COMPILE_FORBID = 2 };

typedef struct mxjit_context_options {
  size_t struct_size;
  const char* cache_dir; /* writable cache directory. Null: MXJIT_CACHE_DIR, XDG_CACHE_HOME/mxjit,
                            HOME/.cache/mxjit, or memory only, in this order */
  const char* const*
      bundles; /* read-only directories and bundles, in search order. Null: MXJIT_BUNDLE_PATH */
  size_t bundle_count;
  int32_t compile;        /* MXJIT_COMPILE_...; environment: MXJIT_COMPILE=forbid */
  int32_t check_pointers; /* not 0: ask the driver in every call whose memory each pointer is */
  const char* trace;   /* file to which the problem of each new kind of call is appended. Null: MXJIT_TRACE */
  int32_t early_start; /* not 0: kernels may start before the kernel ahead of them on the stream has ended,
                          and wait for that end before they touch memory. See ContextOptions */
  int32_t reserved;    /* 0 */
} mxjit_context_options;
#define MXJIT_CONTEXT_OPTIONS_INIT \
  { sizeof(mxjit_context_options), NULL, NULL, 0, MXJIT_COMPILE_ENVIRONMENT, 0, NULL, 0, 0 }

/* Null options: the defaults. On failure *context is null. Needs a GPU. In a process forked from one that
 * used the driver through this library it is MXJIT_UNAVAILABLE, for CUDA does not survive a fork. */
MXJIT_API mxjit_status mxjit_context_create(const mxjit_context_options* options, mxjit_context** context);
/* Null is fine. Work that was launched goes on. */
MXJIT_API void mxjit_context_destroy(mxjit_context* context);
/* Compiles where needed and loads every kernel that the problems of a trace can need: text, one JSON object a
 * line. MXJIT_INVALID_ARGUMENT, the line named, before anything is loaded. */
MXJIT_API mxjit_status mxjit_load(mxjit_context* context, const char* trace);

/* ---- quantize */

typedef struct mxjit_quantize_options {
  size_t struct_size;
  int32_t format;     /* MXJIT_E4M3 or MXJIT_E5M2 */
  int32_t scaling;    /* MXJIT_SCALING_... */
  int32_t block_kind; /* MXJIT_BLOCK_... */
  int32_t block_rows; /* across and along the scaled axis; mx 32 is 1, 32 */
  int32_t block_cols;
  int32_t rounding;         /* MXJIT_ROUNDING_... */
  int32_t scale_layout;     /* MXJIT_LAYOUT_... */
  int32_t axes;             /* MXJIT_AXIS_..., added */
  int32_t group_count;      /* 0: no groups */
  int32_t group_alignment;  /* what every group's size is a multiple of: 128, 32 or 1 */
  int32_t transposed_input; /* not 0: x is stored as (N, M), or (E, N, M) */
  int32_t reserved;         /* 0 */
  int32_t pre;              /* MXJIT_PRE_... */
  int32_t emit_high;        /* not 0: the value before quantization goes to args.y, too */
} mxjit_quantize_options;
#define MXJIT_QUANTIZE_OPTIONS_INIT                                                               \
  {                                                                                               \
    sizeof(mxjit_quantize_options), MXJIT_E4M3, MXJIT_SCALING_MX, MXJIT_BLOCK_EXTENTS, 1, 32,     \
        MXJIT_ROUNDING_RCEIL, MXJIT_LAYOUT_PLAIN, MXJIT_AXIS_ROW, 0, 128, 0, 0, MXJIT_PRE_NONE, 0 \
  }

/* Shapes: QuantizeArgs of quantize.hpp. */
typedef struct mxjit_quantize_args {
  size_t struct_size;
  mxjit_tensor x;
  mxjit_tensor q_row; /* with MXJIT_AXIS_ROW */
  mxjit_tensor s_row;
  mxjit_tensor q_col; /* with MXJIT_AXIS_COL */
  mxjit_tensor s_col;
  mxjit_tensor offsets;   /* with groups: i32 (count) group ends, on the device */
  mxjit_tensor status;    /* with groups, optional: i32 (4), zeroed by the caller */
  mxjit_tensor workspace; /* u8, 1-D, mxjit_quantize_workspace_size bytes or more, base a multiple of 256 */
  float amax_cap;         /* float scales: no largest magnitude counts as more than this; 0: no cap */
  int32_t reserved;       /* 0 */
  mxjit_tensor y;         /* with emit_high: bf16 (M, N), or (E, M, N) */
  mxjit_tensor weight;    /* with MXJIT_PRE_RMSNORM: x's dtype, (N) */
  double swiglu_alpha;    /* 1 in MXJIT_QUANTIZE_ARGS_INIT */
  double swiglu_limit;    /* 0: none */
  double rms_eps;         /* 1e-6 in MXJIT_QUANTIZE_ARGS_INIT */
} mxjit_quantize_args;
#define MXJIT_QUANTIZE_ARGS_INIT                                                                     \
  {                                                                                                  \
    sizeof(mxjit_quantize_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, \
        MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, 0, 0, MXJIT_NO_TENSOR,   \
        MXJIT_NO_TENSOR, 1.0, 0.0, 1e-6                                                              \
  }

/* Bytes of workspace that a call needs whose x has the dtype, rank and extents of args->x; its memory and the
 * other tensors do not matter. Never falls as an extent grows. 0 but for float scales of columns and of
 * the tensor, and for RMSNorm - unless of rows alone: see workspace_size in mxjit/quantize.hpp. */
MXJIT_API mxjit_status mxjit_quantize_workspace_size(const mxjit_quantize_options* options,
                                                     const mxjit_quantize_args* args, size_t* bytes);
/* Looks up, compiles and loads if needed, launches. Asynchronous. Null options: the defaults. */
MXJIT_API mxjit_status mxjit_quantize(mxjit_context* context, const mxjit_quantize_options* options,
                                      const mxjit_quantize_args* args, mxjit_stream stream);
/* Compiles and loads, without launching. On failure *plan is null. */
MXJIT_API mxjit_status mxjit_plan_quantize(mxjit_context* context, const mxjit_quantize_options* options,
                                           const mxjit_quantize_args* args, mxjit_plan** plan);
/* Launches a plan of mxjit_plan_quantize for tensors of the dtypes, ranks and N planned for and an M of its
 * bucket. Never compiles, allocates or locks. */
MXJIT_API mxjit_status mxjit_launch_quantize(const mxjit_plan* plan, const mxjit_quantize_args* args,
                                             mxjit_stream stream);

/* ---- gemm: D = alpha * decode(A) * decode(B)^T + beta * C + bias */

typedef struct mxjit_operand_scale {
  int32_t present;    /* 0: the elements are the values, and the rest is ignored */
  int32_t scaling;    /* MXJIT_SCALING_... */
  int32_t block_kind; /* MXJIT_BLOCK_... */
  int32_t block_rows; /* with MXJIT_BLOCK_EXTENTS: across and along the contraction */
  int32_t block_cols;
  int32_t layout; /* MXJIT_LAYOUT_... */
} mxjit_operand_scale;

/* D in e4m3 with a scale for every block of a row's columns. */
typedef struct mxjit_requant {
  int32_t present;    /* 0: none, and the rest is ignored */
  int32_t scaling;    /* MXJIT_SCALING_... */
  int32_t block_kind; /* MXJIT_BLOCK_EXTENTS */
  int32_t block_rows; /* mx: 1, 32; fp32: 1, 128 */
  int32_t block_cols;
  int32_t rounding; /* MXJIT_ROUNDING_... */
  int32_t layout;   /* MXJIT_LAYOUT_... */
} mxjit_requant;

typedef struct mxjit_gemm_options {
  size_t struct_size;
  mxjit_operand_scale a_scale;
  mxjit_operand_scale b_scale;
  int32_t a_mn_major; /* not 0: a is stored as (K, M), or (B, K, M) */
  int32_t b_mn_major;
  int32_t accumulation;    /* MXJIT_ACCUMULATION_... */
  int32_t output;          /* MXJIT_BF16, MXJIT_FP16, MXJIT_FP32 or MXJIT_E4M3 */
  mxjit_requant requant;   /* only with MXJIT_E4M3 */
  int32_t amax;            /* not 0: d's largest magnitude goes to args.amax */
  int32_t epilogue;        /* MXJIT_EPILOGUE_... */
  int32_t batch_invariant; /* not 0: a row's bits depend on neither M nor the other rows */
} mxjit_gemm_options;
#define MXJIT_GEMM_OPTIONS_INIT                                                                           \
  {                                                                                                       \
    sizeof(mxjit_gemm_options), {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, 0, 0, MXJIT_ACCUMULATION_PROMOTE, \
        MXJIT_BF16, {0, 0, 0, 0, 0, 0, 0}, 0, MXJIT_EPILOGUE_NONE, 0                                      \
  }

/* Shapes: GemmArgs of gemm.hpp. */
typedef struct mxjit_gemm_args {
  size_t struct_size;
  mxjit_tensor a;
  mxjit_tensor a_scale;
  mxjit_tensor b;
  mxjit_tensor b_scale;
  mxjit_tensor d;
  mxjit_tensor c;    /* read where beta is not 0 */
  mxjit_tensor bias; /* no tensor: none */
  float alpha;       /* 1 in MXJIT_GEMM_ARGS_INIT */
  float beta;
  mxjit_tensor d_scale;  /* with an output of MXJIT_E4M3 and no requant */
  mxjit_tensor d_scales; /* with requant */
  mxjit_tensor amax;     /* with options.amax */
  float amax_cap;        /* requant with fp32: no largest magnitude counts as more than this; 0: no cap */
  float swiglu_alpha;    /* 1 in MXJIT_GEMM_ARGS_INIT */
  float swiglu_limit;    /* 0: none */
  int32_t reserved;      /* 0 */
} mxjit_gemm_args;
#define MXJIT_GEMM_ARGS_INIT                                                                             \
  {                                                                                                      \
    sizeof(mxjit_gemm_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR,         \
        MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, 1.0F, 0.0F, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, \
        MXJIT_NO_TENSOR, 0.0F, 1.0F, 0.0F, 0                                                             \
  }

/* As the three for quantize. A plan's tile stays; extents, pitches and values may differ. */
MXJIT_API mxjit_status mxjit_gemm(mxjit_context* context, const mxjit_gemm_options* options,
                                  const mxjit_gemm_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_gemm(mxjit_context* context, const mxjit_gemm_options* options,
                                       const mxjit_gemm_args* args, mxjit_plan** plan);
MXJIT_API mxjit_status mxjit_launch_gemm(const mxjit_plan* plan, const mxjit_gemm_args* args,
                                         mxjit_stream stream);

/* ---- dequantize */

typedef struct mxjit_dequantize_options {
  size_t struct_size;
  int32_t scaling;    /* MXJIT_SCALING_... */
  int32_t block_kind; /* MXJIT_BLOCK_... */
  int32_t block_rows; /* as in mxjit_quantize_options */
  int32_t block_cols;
  int32_t scale_layout;    /* MXJIT_LAYOUT_... */
  int32_t axis_col;        /* not 0: q and s are q_col and s_col of a quantization */
  int32_t group_count;     /* 0: no groups */
  int32_t group_alignment; /* 128, 32 or 1 */
} mxjit_dequantize_options;
#define MXJIT_DEQUANTIZE_OPTIONS_INIT                                                                      \
  {                                                                                                        \
    sizeof(mxjit_dequantize_options), MXJIT_SCALING_MX, MXJIT_BLOCK_EXTENTS, 1, 32, MXJIT_LAYOUT_PLAIN, 0, \
        0, 128                                                                                             \
  }

/* Shapes: DequantizeArgs of dequantize.hpp. */
typedef struct mxjit_dequantize_args {
  size_t struct_size;
  mxjit_tensor q;
  mxjit_tensor s;
  mxjit_tensor x;       /* written */
  mxjit_tensor offsets; /* with groups: i32 (count) group ends, on the device */
  mxjit_tensor status;  /* with groups, optional: i32 (4), zeroed by the caller */
} mxjit_dequantize_args;
#define MXJIT_DEQUANTIZE_ARGS_INIT                                                                     \
  {                                                                                                    \
    sizeof(mxjit_dequantize_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, \
        MXJIT_NO_TENSOR                                                                                \
  }

/* As the three for quantize. A plan is for q and x of its dtypes; extents and pitches may differ. */
MXJIT_API mxjit_status mxjit_dequantize(mxjit_context* context, const mxjit_dequantize_options* options,
                                        const mxjit_dequantize_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_dequantize(mxjit_context* context, const mxjit_dequantize_options* options,
                                             const mxjit_dequantize_args* args, mxjit_plan** plan);
MXJIT_API mxjit_status mxjit_launch_dequantize(const mxjit_plan* plan, const mxjit_dequantize_args* args,
                                               mxjit_stream stream);

/* ---- pack_scales, unpack_scales: codes from the plain matrix to the blocked layout, and back */

typedef struct mxjit_pack_scales_options {
  size_t struct_size;
  int32_t placement;   /* MXJIT_PLACEMENT_... */
  int32_t group_count; /* 1 to 1024 with MXJIT_PLACEMENT_M_GROUPS and _K_GROUPS, else 0 */
} mxjit_pack_scales_options;
#define MXJIT_PACK_SCALES_OPTIONS_INIT \
  { sizeof(mxjit_pack_scales_options), MXJIT_PLACEMENT_DENSE, 0 }

/* Shapes: PackScalesArgs of scales.hpp. */
typedef struct mxjit_pack_scales_args {
  size_t struct_size;
  mxjit_tensor s;         /* read by pack, written by unpack */
  mxjit_tensor s_blocked; /* written by pack, read by unpack */
  mxjit_tensor offsets;   /* with groups: i32 (count), ends of groups of rows or of columns */
  mxjit_tensor status;    /* with groups, optional: i32 (4), zeroed by the caller */
} mxjit_pack_scales_args;
#define MXJIT_PACK_SCALES_ARGS_INIT \
  { sizeof(mxjit_pack_scales_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR }

MXJIT_API mxjit_status mxjit_pack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                                         const mxjit_pack_scales_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_pack_scales(mxjit_context* context,
                                              const mxjit_pack_scales_options* options,
                                              const mxjit_pack_scales_args* args, mxjit_plan** plan);
MXJIT_API mxjit_status mxjit_unpack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                                           const mxjit_pack_scales_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_unpack_scales(mxjit_context* context,
                                                const mxjit_pack_scales_options* options,
                                                const mxjit_pack_scales_args* args, mxjit_plan** plan);
/* Of either plan, which knows its way. Extents and pitches may differ. */
MXJIT_API mxjit_status mxjit_launch_pack_scales(const mxjit_plan* plan, const mxjit_pack_scales_args* args,
                                                mxjit_stream stream);

/* ---- pad_groups, unpad_groups: groups of rows to starts that are multiples of an alignment, and back */

typedef struct mxjit_pad_groups_options {
  size_t struct_size;
  int64_t alignment;   /* rows, at least 1 */
  int32_t group_count; /* 1 to 1024 */
  int32_t reserved;    /* 0 */
} mxjit_pad_groups_options;
#define MXJIT_PAD_GROUPS_OPTIONS_INIT \
  { sizeof(mxjit_pad_groups_options), 0, 0, 0 }

/* Shapes: PadGroupsArgs of pad.hpp. */
typedef struct mxjit_pad_groups_args {
  size_t struct_size;
  mxjit_tensor x;
  mxjit_tensor offsets;
  mxjit_tensor x_padded; /* written, as starts and ends */
  mxjit_tensor starts;
  mxjit_tensor ends;
  mxjit_tensor status; /* optional: i32 (4), zeroed by the caller */
} mxjit_pad_groups_args;
#define MXJIT_PAD_GROUPS_ARGS_INIT                                                                     \
  {                                                                                                    \
    sizeof(mxjit_pad_groups_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, \
        MXJIT_NO_TENSOR, MXJIT_NO_TENSOR                                                               \
  }

/* Shapes: UnpadGroupsArgs of pad.hpp. */
typedef struct mxjit_unpad_groups_args {
  size_t struct_size;
  mxjit_tensor x_padded;
  mxjit_tensor offsets;
  mxjit_tensor starts;
  mxjit_tensor x; /* written */
  mxjit_tensor status;
} mxjit_unpad_groups_args;
#define MXJIT_UNPAD_GROUPS_ARGS_INIT                                                                     \
  {                                                                                                      \
    sizeof(mxjit_unpad_groups_args), MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, MXJIT_NO_TENSOR, \
        MXJIT_NO_TENSOR                                                                                  \
  }

/* As the three for quantize, but that options are never null. Dtypes, extents and pitches of a plan's calls
 * may differ. */
MXJIT_API mxjit_status mxjit_pad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                        const mxjit_pad_groups_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_pad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                             const mxjit_pad_groups_args* args, mxjit_plan** plan);
MXJIT_API mxjit_status mxjit_launch_pad_groups(const mxjit_plan* plan, const mxjit_pad_groups_args* args,
                                               mxjit_stream stream);
MXJIT_API mxjit_status mxjit_unpad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                          const mxjit_unpad_groups_args* args, mxjit_stream stream);
MXJIT_API mxjit_status mxjit_plan_unpad_groups(mxjit_context* context,
                                               const mxjit_pad_groups_options* options,
                                               const mxjit_unpad_groups_args* args, mxjit_plan** plan);
MXJIT_API mxjit_status mxjit_launch_unpad_groups(const mxjit_plan* plan, const mxjit_unpad_groups_args* args,
                                                 mxjit_stream stream);

/* Null is fine. */
MXJIT_API void mxjit_plan_destroy(mxjit_plan* plan);

/* ---- what is told */

/* Statistics of statistics.hpp; times in nanoseconds, added up over threads. */
typedef struct mxjit_statistics {
  size_t struct_size;
  uint64_t memory_hits;
  uint64_t root_hits;
  uint64_t layer_hits; /* of all read-only layers */
  uint64_t layers;     /* how many there are: see mxjit_context_layer */
  uint64_t compiles;
  uint64_t compile_failures;
  uint64_t loads;
  uint64_t publishes;
  uint64_t publish_failures;
  uint64_t quarantined;
  uint64_t refused;
  uint64_t evicted;
  uint64_t lock_waits;
  uint64_t lock_failures;
  uint64_t look_up_ns;
  uint64_t compile_ns;
  uint64_t publish_ns;
  uint64_t load_ns;
} mxjit_statistics;
#define MXJIT_STATISTICS_INIT \
  { sizeof(mxjit_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills as much of *statistics as its struct_size holds; what this library does not know becomes 0. */
MXJIT_API mxjit_status mxjit_context_statistics(const mxjit_context* context, mxjit_statistics* statistics);
/* Path, valid as long as the context, and hits of the layer searched at `index`. Either may be null. */
MXJIT_API mxjit_status mxjit_context_layer(const mxjit_context* context, size_t index, const char** path,
                                           uint64_t* hits);

enum {
  MXJIT_LOG_ENVIRONMENT = -1, /* the level that MXJIT_LOG names, else warn */
  MXJIT_LOG_ERROR = 0,
  MXJIT_LOG_WARN = 1,
  MXJIT_LOG_INFO = 2,
  MXJIT_LOG_DEBUG = 3
};

/* Receives one line without a newline, valid during the call, from any thread, several at once. It may call
 * the library; what that logs in the same thread is dropped. */
typedef void (*mxjit_log_callback)(void* user, int32_t level, const char* line);

/* Replaces the process-wide callback, which gets lines of `level` and more urgent ones; null: none. When this
 * returns, the callback of before is not called any more, unless a callback calls this. The library itself
 * never prints. */
MXJIT_API mxjit_status mxjit_set_log_callback(mxjit_log_callback callback, void* user, int32_t level);

#ifdef __cplusplus
}
#endif

#endif
