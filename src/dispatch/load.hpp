// Kernels made ready ahead of the calls that need them.
#pragma once

#include <string_view>

#include "codegen/descriptor.hpp"
#include "mxjit/context.hpp"

namespace mxjit::dispatch {

/// Compiles the kernel if no layer has it and loads it on the context, whose device must be of its target.
/// `problem`: one that needs it, as JSON, for messages. Throws what compiling and loading throw.
void load_kernel(Context& context, const codegen::KernelDescriptor& descriptor, std::string_view problem);

}  // namespace mxjit::dispatch
