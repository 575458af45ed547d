/* Uses the installed library from C. Without a GPU the right answers are errors that say so. */
#include <mxjit/mxjit.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("not so: %s (%s: \"%s\", argument \"%s\")\n", what, mxjit_status_name(mxjit_last_status()),
         mxjit_last_message(), mxjit_last_argument());
}

static void on_line(void* user, int32_t level, const char* line) {
  (void)level;
  (void)line;
  ++*(int*)user;
}

/* One pass over bf16 activations of device memory, as README.md shows it in C++. */
static mxjit_status quantize(mxjit_context* context, void* x, void* q_row, void* s_row, int64_t m, int64_t n) {
  mxjit_quantize_options options = MXJIT_QUANTIZE_OPTIONS_INIT;
  mxjit_quantize_args args = MXJIT_QUANTIZE_ARGS_INIT;
  const mxjit_tensor x_tensor = {x, MXJIT_BF16, 2, {m, n, 0, 0}, 0};
  const mxjit_tensor q_tensor = {q_row, MXJIT_E4M3, 2, {m, n, 0, 0}, 0};
  const mxjit_tensor s_tensor = {s_row, MXJIT_E8M0, 2, {m, (n + 31) / 32, 0, 0}, 0};
  args.x = x_tensor;
  args.q_row = q_tensor;
  args.s_row = s_tensor;
  return mxjit_quantize(context, &options, &args, NULL);
}

/* The structs of the ops that are one kernel each: their defaults hold no tensors. */
static void without_tensors(mxjit_context* context, const char* what) {
  const mxjit_dequantize_options dequantize = MXJIT_DEQUANTIZE_OPTIONS_INIT;
  const mxjit_dequantize_args dequantize_args = MXJIT_DEQUANTIZE_ARGS_INIT;
  const mxjit_pack_scales_options pack = MXJIT_PACK_SCALES_OPTIONS_INIT;
  const mxjit_pack_scales_args pack_args = MXJIT_PACK_SCALES_ARGS_INIT;
  const mxjit_pad_groups_options pad = MXJIT_PAD_GROUPS_OPTIONS_INIT;
  const mxjit_pad_groups_args pad_args = MXJIT_PAD_GROUPS_ARGS_INIT;
  const mxjit_unpad_groups_args unpad_args = MXJIT_UNPAD_GROUPS_ARGS_INIT;
  check(mxjit_dequantize(context, &dequantize, &dequantize_args, NULL) == MXJIT_INVALID_ARGUMENT, what);
  check(mxjit_pack_scales(context, &pack, &pack_args, NULL) == MXJIT_INVALID_ARGUMENT, what);
  check(mxjit_unpack_scales(context, &pack, &pack_args, NULL) == MXJIT_INVALID_ARGUMENT, what);
  check(mxjit_pad_groups(context, &pad, &pad_args, NULL) == MXJIT_INVALID_ARGUMENT, what);
  check(mxjit_unpad_groups(context, &pad, &unpad_args, NULL) == MXJIT_INVALID_ARGUMENT, what);
}

/* With a GPU: the context works and refuses null pointers before anything is launched. */
static void with_context(mxjit_context* context) {
  mxjit_statistics statistics = MXJIT_STATISTICS_INIT;
  mxjit_gemm_options options = MXJIT_GEMM_OPTIONS_INIT;
  mxjit_gemm_args args = MXJIT_GEMM_ARGS_INIT;
  mxjit_plan* plan = NULL;
  check(quantize(context, NULL, NULL, NULL, 64, 64) == MXJIT_INVALID_ARGUMENT, "null memory is refused");
  check(strcmp(mxjit_last_argument(), "x") == 0, "x is named");
  check(mxjit_plan_gemm(context, &options, &args, &plan) == MXJIT_INVALID_ARGUMENT, "no tensors are refused");
  options.epilogue = 77;
  check(mxjit_plan_gemm(context, &options, &args, &plan) == MXJIT_INVALID_ARGUMENT, "77 is no epilogue");
  check(strcmp(mxjit_last_argument(), "options.epilogue") == 0, "the epilogue is named");
  without_tensors(context, "no tensors of small ops are refused");
  check(plan == NULL, "there is no plan");
  check(mxjit_context_statistics(context, &statistics) == MXJIT_SUCCESS, "statistics");
  check(statistics.compiles == 0 && statistics.loads == 0, "nothing was compiled");
  mxjit_context_destroy(context);
}

int main(void) {
  int lines = 0;
  mxjit_context* context = NULL;
  mxjit_context_options options = MXJIT_CONTEXT_OPTIONS_INIT;
  mxjit_status status;

  printf("mxjit %s, from C\n", mxjit_version());
  check(strcmp(mxjit_version(), "") != 0, "there is a version");
  check(mxjit_last_status() == MXJIT_SUCCESS && strcmp(mxjit_last_message(), "") == 0, "no error before any");
  check(mxjit_set_log_callback(on_line, &lines, MXJIT_LOG_DEBUG) == MXJIT_SUCCESS, "a callback is set");

  check(quantize(NULL, NULL, NULL, NULL, 64, 64) == MXJIT_INVALID_ARGUMENT, "no context is refused");
  check(strcmp(mxjit_last_argument(), "context") == 0, "the context is named");
  check(mxjit_launch_quantize(NULL, NULL, NULL) == MXJIT_INVALID_ARGUMENT, "no plan is refused");
  without_tensors(NULL, "no context of small ops is refused");
  options.compile = 77;
  check(mxjit_context_create(&options, &context) == MXJIT_INVALID_ARGUMENT, "77 is refused");
  check(strcmp(mxjit_last_argument(), "options.compile") == 0, "the option is named");
  mxjit_context_destroy(NULL);
  mxjit_plan_destroy(NULL);

  options.compile = MXJIT_COMPILE_FORBID;
  options.cache_dir = "consumer-cache";
  status = mxjit_context_create(&options, &context);
  if (status == MXJIT_SUCCESS) {
    with_context(context);
  } else {
    printf("%s: %s\n", mxjit_status_name(status), mxjit_last_message());
    check(status == MXJIT_UNAVAILABLE, "without a GPU it is unavailable");
    check(context == NULL, "there is no context");
    check(strstr(mxjit_last_message(), "CUDA driver") != NULL, "the driver is named");
  }
  check(mxjit_set_log_callback(NULL, NULL, MXJIT_LOG_ENVIRONMENT) == MXJIT_SUCCESS, "the callback is taken back");
  return failures == 0 ? 0 : 1;
}
