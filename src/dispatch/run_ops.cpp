// Problems of the ops that are one kernel each, as calls.
#include <optional>
#include <string>

#include "dispatch/run.hpp"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {
namespace {

struct Launch {
  Context& context;
  const DeviceTensors& tensors;
  Stream stream;

  Tensor operator()(const char* name) const { return take(tensors, name); }
  Tensor status() const { return tensors.contains("status") ? take(tensors, "status") : Tensor{}; }

  bool operator()(const problem::Dequantize& op) const {
    const Launch& take = *this;
    DequantizeOptions options{
        .scaling = op.scaling, .block = op.block, .scale_layout = op.scale_layout, .axis_col = op.axis_col};
    DequantizeArgs args{.q = take("q"), .s = take("s"), .x = take("x"), .offsets = {}, .status = status()};
    if (op.groups) {
      options.groups = {static_cast<std::int32_t>(op.groups->count), op.groups->alignment};
      args.offsets = take("offsets");
    }
    context.dequantize(options, args, stream);
    return true;
  }

  bool operator()(const problem::PackScales& op) const {
    const Launch& take = *this;
    const PackScalesOptions options{.placement = op.placement,
                                    .groups = static_cast<std::int32_t>(op.groups.value_or(0))};
    PackScalesArgs args{.s = take("s"), .s_blocked = take("s_blocked"), .offsets = {}, .status = status()};
    if (op.groups) args.offsets = take("offsets");
    if (op.unpack)
      context.unpack_scales(options, args, stream);
    else
      context.pack_scales(options, args, stream);
    return true;
  }

  bool operator()(const problem::PadGroups& op) const {
    const Launch& take = *this;
    const PadGroupsOptions options{.groups = static_cast<std::int32_t>(op.groups), .alignment = op.alignment};
    if (op.unpad)
      context.unpad_groups(options,
                           {.x_padded = take("x_padded"),
                            .offsets = take("offsets"),
                            .starts = take("starts"),
                            .x = take("x"),
                            .status = status()},
                           stream);
    else
      context.pad_groups(options,
                         {.x = take("x"),
                          .offsets = take("offsets"),
                          .x_padded = take("x_padded"),
                          .starts = take("starts"),
                          .ends = take("ends"),
                          .status = status()},
                         stream);
    return true;
  }

  bool operator()(const auto&) const { return false; }
};

}  // namespace

bool launch_op(Context& context, const problem::Problem& problem, const DeviceTensors& tensors,
               Stream stream) {
  const Launch launch{context, tensors, stream};
  return std::visit([&](const auto& op) { return launch(op); }, problem.op);
}

}  // namespace mxjit::dispatch
