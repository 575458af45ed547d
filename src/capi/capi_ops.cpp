// The functions of mxjit.h for the ops that are one kernel each.
#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"

using namespace mxjit;
using namespace mxjit::capi;

mxjit_status mxjit_dequantize(mxjit_context* context, const mxjit_dequantize_options* options,
                              const mxjit_dequantize_args* args, mxjit_stream stream) {
  return guarded(
      [&] { context_of(context).dequantize(dequantize_options(options), dequantize_args(args), stream); });
}

mxjit_status mxjit_plan_dequantize(mxjit_context* context, const mxjit_dequantize_options* options,
                                   const mxjit_dequantize_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{context_of(context).plan(dequantize_options(options), dequantize_args(args))};
  });
}

mxjit_status mxjit_launch_dequantize(const mxjit_plan* plan, const mxjit_dequantize_args* args,
                                     mxjit_stream stream) {
  return guarded(
      [&] { plan_of<DequantizePlan>(plan, "mxjit_plan_dequantize").launch(dequantize_args(args), stream); });
}

mxjit_status mxjit_pack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                               const mxjit_pack_scales_args* args, mxjit_stream stream) {
  return guarded(
      [&] { context_of(context).pack_scales(pack_scales_options(options), pack_scales_args(args), stream); });
}

mxjit_status mxjit_plan_pack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                                    const mxjit_pack_scales_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{
        context_of(context).plan_pack_scales(pack_scales_options(options), pack_scales_args(args))};
  });
}

mxjit_status mxjit_unpack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                                 const mxjit_pack_scales_args* args, mxjit_stream stream) {
  return guarded([&] {
    context_of(context).unpack_scales(pack_scales_options(options), pack_scales_args(args), stream);
  });
}

mxjit_status mxjit_plan_unpack_scales(mxjit_context* context, const mxjit_pack_scales_options* options,
                                      const mxjit_pack_scales_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{
        context_of(context).plan_unpack_scales(pack_scales_options(options), pack_scales_args(args))};
  });
}

mxjit_status mxjit_launch_pack_scales(const mxjit_plan* plan, const mxjit_pack_scales_args* args,
                                      mxjit_stream stream) {
  return guarded([&] {
    plan_of<PackScalesPlan>(plan, "mxjit_plan_pack_scales or mxjit_plan_unpack_scales")
        .launch(pack_scales_args(args), stream);
  });
}

mxjit_status mxjit_pad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                              const mxjit_pad_groups_args* args, mxjit_stream stream) {
  return guarded(
      [&] { context_of(context).pad_groups(pad_groups_options(options), pad_groups_args(args), stream); });
}

mxjit_status mxjit_plan_pad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                   const mxjit_pad_groups_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{context_of(context).plan(pad_groups_options(options), pad_groups_args(args))};
  });
}

mxjit_status mxjit_launch_pad_groups(const mxjit_plan* plan, const mxjit_pad_groups_args* args,
                                     mxjit_stream stream) {
  return guarded(
      [&] { plan_of<PadGroupsPlan>(plan, "mxjit_plan_pad_groups").launch(pad_groups_args(args), stream); });
}

mxjit_status mxjit_unpad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                const mxjit_unpad_groups_args* args, mxjit_stream stream) {
  return guarded([&] {
    context_of(context).unpad_groups(pad_groups_options(options), unpad_groups_args(args), stream);
  });
}

mxjit_status mxjit_plan_unpad_groups(mxjit_context* context, const mxjit_pad_groups_options* options,
                                     const mxjit_unpad_groups_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{context_of(context).plan(pad_groups_options(options), unpad_groups_args(args))};
  });
}

mxjit_status mxjit_launch_unpad_groups(const mxjit_plan* plan, const mxjit_unpad_groups_args* args,
                                       mxjit_stream stream) {
  return guarded([&] {
    plan_of<UnpadGroupsPlan>(plan, "mxjit_plan_unpad_groups").launch(unpad_groups_args(args), stream);
  });
}
