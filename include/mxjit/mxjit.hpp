// Everything public.
#pragma once

#include "mxjit/context.hpp"     // IWYU pragma: export
#include "mxjit/dequantize.hpp"  // IWYU pragma: export
#include "mxjit/error.hpp"       // IWYU pragma: export
#include "mxjit/gemm.hpp"        // IWYU pragma: export
#include "mxjit/log.hpp"         // IWYU pragma: export
#include "mxjit/pad.hpp"         // IWYU pragma: export
#include "mxjit/quantize.hpp"    // IWYU pragma: export
#include "mxjit/scales.hpp"      // IWYU pragma: export
#include "mxjit/statistics.hpp"  // IWYU pragma: export
#include "mxjit/types.hpp"       // IWYU pragma: export
